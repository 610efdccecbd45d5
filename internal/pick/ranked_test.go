package pick_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/pick"
)

// known returns endpoints of these weights with an ID each.
func known(weights ...int) []*pick.Endpoint {
	var traits []pick.Traits
	for i, w := range weights {
		traits = append(traits, pick.Traits{Weight: w, ID: pick.HashOf(fmt.Sprint("endpoint ", i))})
	}
	return traited(traits...)
}

func TestRanked(t *testing.T) {
	t.Run("each key is anywhere, by weight", func(t *testing.T) {
		set := known(1, 1, 5, 3)
		g := pick.NewGroups(set, nil, 2)
		random := source(t)
		counts := make([]int, len(set))
		for i := range 100_000 {
			r := g.Rank(0, random, pick.HashOf(fmt.Sprint("key ", i)), pick.Bound, nil)
			counts[r.Next()]++
		}
		// Idle endpoints may be given one call each, whatever their weight.
		wantShares(t, "keys", counts, 1, 1, 5, 3)
	})
	t.Run("asks every endpoint once, the tried ones last", func(t *testing.T) {
		random := source(t)
		for n := range 80 {
			weights := make([]int, n)
			for i := range weights {
				weights[i] = i % 3
			}
			set := known(weights...)
			tried := new(attempt.Set)
			if n > 3 {
				tried.Add(set[2])
			}
			r := pick.NewGroups(set, nil, 2).Rank(0, random, uint64(n), pick.Bound, tried)
			var order []int
			for i := r.Next(); i != pick.None; i = r.Next() {
				order = append(order, i)
			}
			if len(order) != n || len(slices.Compact(sorted(order))) != n || n > 3 && order[n-1] != 2 {
				t.Fatalf("of %d asked in the order %v", n, order)
			}
		}
	})
	t.Run("within the bound", func(t *testing.T) {
		set := known(1, 1, 1, 1)
		g := pick.NewGroups(set, nil, 2)
		random := source(t)
		most := 0
		for range 400 {
			r := g.Rank(0, random, 7, pick.Bound, nil)
			i := r.Next()
			set[i].Hold()
			most = max(most, set[i].Work())
		}
		if most != 125 {
			t.Errorf("one got %d of 400, want 125", most)
		}
	})
	t.Run("the same in every program", func(t *testing.T) {
		if got := pick.HashOf("a"); got != pick.HashOf("a") || pick.HashOf("") == pick.HashOf("a") {
			t.Errorf("got %x", got)
		}
		if got := pick.HashOf("http://10.0.0.1:8080"); got != 0x5fa2e8fe8004590c {
			t.Errorf("got %#x", got)
		}
	})
}

func BenchmarkRanked(b *testing.B) {
	for _, n := range []int{3, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := pick.NewGroups(known(make([]int, n)...), nil, 2)
			random := source(b)
			b.ReportAllocs()
			key := uint64(0)
			for b.Loop() {
				key++
				r := g.Rank(0, random, key, pick.Bound, nil)
				if r.Next() == pick.None {
					b.Fatal("none")
				}
			}
		})
	}
}
