package pick

import (
	"math/rand/v2"
	"testing"
)

// What was pushed is asked in that order, and what is pushed while some wait comes after them.
func TestHeadsAreAskedInTurn(t *testing.T) {
	set := make([]*Endpoint, 8)
	for i := range set {
		set[i] = new(Endpoint)
	}
	turn := Turn{rest: NewRest(0, rand.NewPCG(1, 1), set, None, None, nil)}
	want := func(wants ...int) {
		t.Helper()
		for _, want := range wants {
			if got := turn.fromHead(); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
		}
	}
	turn.push(1, None, 2)
	want(1)
	turn.push(3, 1)
	want(2, 3, None)
	turn.push(4, 5, 6, 7) // as many as there is room for, since all before are through
	want(4, 5, 6, 7, None)
}
