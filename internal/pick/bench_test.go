package pick_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/pick"
)

func BenchmarkBetter(b *testing.B) {
	random := rand.NewPCG(seed, seed)
	for _, n := range []int{3, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			set := equal(n)
			b.ReportAllocs()
			for b.Loop() {
				if first, second := pick.Better(0, random, set, nil); first == second {
					b.Fatal("twice the same")
				}
			}
		})
	}
}

// BenchmarkRest goes over all endpoints.
func BenchmarkRest(b *testing.B) {
	random := rand.NewPCG(seed, seed)
	for _, n := range []int{3, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			set := equal(n)
			b.ReportAllocs()
			for b.Loop() {
				rest := pick.NewRest(0, random, set, 0, 1, nil)
				for i := rest.Next(); i != pick.None; i = rest.Next() {
					if i < 2 {
						b.Fatal("asked again")
					}
				}
			}
		})
	}
}

// BenchmarkTurn is the first pick of three classes by weight, of a near and a far half, and after an attempt.
func BenchmarkTurn(b *testing.B) {
	random := rand.NewPCG(seed, seed)
	for _, n := range []int{3, 1000} {
		for _, c := range []struct {
			name   string
			traits func(i int) pick.Traits
			tried  bool
		}{
			{"weights", func(i int) pick.Traits { return pick.Traits{Weight: 1 + i%3} }, false},
			{"zones", func(i int) pick.Traits { return pick.Traits{Near: i%3 == 0} }, false},
			{"priorities", func(i int) pick.Traits { return pick.Traits{Priority: i % 2} }, false},
			{"attempt", func(i int) pick.Traits { return pick.Traits{Weight: 1 + i%3} }, true},
		} {
			b.Run(fmt.Sprint(c.name, "/", n), func(b *testing.B) {
				var all []pick.Traits
				for i := range n {
					all = append(all, c.traits(i))
				}
				set := traited(all...)
				g := pick.NewGroups(set, nil, 2)
				var tried *attempt.Set
				if c.tried {
					tried = new(attempt.Set)
					tried.Add(set[0])
				}
				b.ReportAllocs()
				for b.Loop() {
					turn := g.Begin(0, random, tried)
					if turn.Next() == pick.None {
						b.Fatal("none")
					}
				}
			})
		}
	}
}
