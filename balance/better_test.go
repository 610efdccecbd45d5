package balance

import (
	"math/rand/v2"
	"testing"

	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/pick"
	"github.com/belfry-go/belfry/load"
)

// What most calls choose by is what simulations run: the same numbers give the same two endpoints, in the same order.
func TestBetter(t *testing.T) {
	seed := rand.Uint64()
	tried := &attempt.Set{}
	for n := range 6 {
		s := &set[int, int]{}
		for i := range n {
			ep := &endpoint[int, int]{load: load.Pending{}.Fleet().Join("", 0)}
			ep.Init(ep.load)
			for range i % 3 {
				ep.Hold()
			}
			s.eps, s.picks = append(s.eps, ep), append(s.picks, &ep.Endpoint)
		}
		if n > 0 {
			tried.Add(s.picks[0])
		}
		for _, tried := range []*attempt.Set{nil, tried} {
			b := &Balancer[int, int]{random: rand.NewPCG(seed, 1)}
			random := rand.NewPCG(seed, 1)
			for range 100 {
				first, second := b.better(0, s, tried)
				wantFirst, wantSecond := pick.Better(0, random, s.picks, tried)
				if first != wantFirst || second != wantSecond {
					t.Fatalf("seed %d, %d endpoints: %d and %d, want %d and %d", seed, n, first, second, wantFirst, wantSecond)
				}
			}
		}
	}
}
