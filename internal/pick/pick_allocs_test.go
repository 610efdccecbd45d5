//go:build !race

package pick_test

import (
	"math/rand/v2"
	"testing"

	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/pick"
)

func TestAllocs(t *testing.T) {
	random := rand.NewPCG(seed, seed)
	set := equal(1000)
	got := testing.AllocsPerRun(100, func() {
		first, second := pick.Better(0, random, set, nil)
		rest := pick.NewRest(0, random, set, first, second, nil)
		for i := rest.Next(); i != pick.None; i = rest.Next() {
			set[i].Hold()
			set[i].Begin()
			set[i].Finish()
		}
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
	var traits []pick.Traits
	for i := range 1000 {
		traits = append(traits, pick.Traits{Weight: 1 + i%7, Priority: i % 2, Near: i%3 == 0})
	}
	set = traited(traits...)
	tried := new(attempt.Set)
	tried.Add(set[0])
	groups := pick.NewGroups(set, nil, 2)
	for _, tried := range []*attempt.Set{nil, tried} {
		got := testing.AllocsPerRun(100, func() {
			turn := groups.Begin(0, random, tried)
			for i := turn.Next(); i != pick.None; i = turn.Next() {
				set[i].Hint(true)
			}
		})
		if got != 0 {
			t.Errorf("in groups: %v allocations, want 0", got)
		}
	}
}
