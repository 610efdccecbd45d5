package limit_test

import (
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/limit"
)

func TestContract(t *testing.T) {
	const places = 3
	immediate := belfry.Semantics[int, int]{Until: func(res int, done func()) int { done(); return res }}
	for name, sem := range map[string]belfry.Semantics[int, int]{"plain": {}, "streamed": immediate} {
		t.Run(name, func(t *testing.T) {
			belfrytest.TestLayer(t, func(t testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
				l := limit.NewLimiter(places)
				return limit.NewConcurrency(inner, l, sem), func() {
					if s := l.Stats(); s.InFlight+s.Reserved+s.Waiting != 0 {
						t.Errorf("left behind: %+v", s)
					}
				}
			}, belfrytest.Caps(places))
		})
	}
}
