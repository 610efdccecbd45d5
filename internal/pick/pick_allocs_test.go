//go:build !race

package pick_test

import (
	"math/rand/v2"
	"testing"

	"github.com/belfry-go/belfry/internal/pick"
)

func TestAllocs(t *testing.T) {
	random := rand.NewPCG(seed, seed)
	set := equal(1000)
	got := testing.AllocsPerRun(100, func() {
		first, second := pick.Better(0, random, set, nil)
		rest := pick.NewRest(random, set, first, second, nil)
		for i := rest.Next(); i != pick.None; i = rest.Next() {
			set[i].Hold()
			set[i].Begin()
			set[i].Finish()
		}
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
