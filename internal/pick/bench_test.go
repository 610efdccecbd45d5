package pick_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

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
				rest := pick.NewRest(random, set, 0, 1, nil)
				for i := rest.Next(); i != pick.None; i = rest.Next() {
					if i < 2 {
						b.Fatal("asked again")
					}
				}
			}
		})
	}
}
