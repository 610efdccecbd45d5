package pick_test

import (
	"testing"

	"github.com/belfry-go/belfry/internal/pick"
)

// blocked returns 20 endpoints of which ten in a row seem to have no room, and whether one has none.
func blocked() (set []*pick.Endpoint, full func(int) bool) {
	set = equal(20)
	full = func(i int) bool { return i >= 3 && i < 13 }
	for i, ep := range set {
		ep.Hint(!full(i))
	}
	return set, full
}

// Those that have room take over in equal parts, wherever in the list they stand. In the order of the list, who comes after those that have none would
// get most of their calls.
func TestTakingOver(t *testing.T) {
	random := source(t)
	set, full := blocked()
	served := func(next func() int) int {
		for i := next(); i != pick.None; i = next() {
			if !full(i) {
				return i
			}
		}
		return pick.None
	}
	for name, pickOne := range map[string]func() int{
		"two and the rest": func() int {
			first, second := pick.Better(0, random, set, nil)
			if !full(first) {
				return first
			}
			if !full(second) {
				return second
			}
			rest := pick.NewRest(0, random, set, first, second, nil)
			return served(rest.Next)
		},
		"in groups": func() int {
			turn := pick.NewGroups(set, nil, 2).Begin(0, random, nil)
			return served(turn.Next)
		},
	} {
		counts := make([]int, len(set))
		for range 200_000 {
			counts[pickOne()]++
		}
		chiSquare(t, name, append(counts[:3:3], counts[13:]...))
	}
}

// Of those that have room, too, it is the better of two that is asked: the costliest of ten never, unless it is the last.
func TestTheBetterOfTwoTakesOver(t *testing.T) {
	random := source(t)
	loads := make([]pick.Load, 12)
	for i := range loads {
		loads[i] = constant(i)
	}
	set := endpoints(loads...)
	for i, ep := range set {
		ep.Hint(i < 10)
	}
	counts := make([]int, 10)
	for range 100_000 {
		rest := pick.NewRest(0, random, set, 10, 11, nil)
		first, second := rest.Next(), rest.Next()
		if first > second {
			t.Fatalf("%d was asked before %d, which costs less", first, second)
		}
		counts[first]++
	}
	for i, n := range counts[1:] {
		if n >= counts[i] {
			t.Errorf("%v: one that costs more was asked first as often", counts)
		}
	}
	if counts[9] > 0 {
		t.Errorf("the costliest was the better of two %d times", counts[9])
	}
}
