package hedge_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/hedge"
)

func TestContract(t *testing.T) {
	streams := belfry.Semantics[int, int]{Until: func(res int, done func()) int { done(); return res }}
	for _, c := range []struct {
		name   string
		cfg    hedge.Config
		sem    belfry.Semantics[int, int]
		traits []belfrytest.Trait
	}{
		{"none sent", hedge.Config{Delay: 24 * time.Hour}, belfry.Semantics[int, int]{}, nil},
		{"delay", hedge.Config{Delay: time.Millisecond}, belfry.Semantics[int, int]{}, []belfrytest.Trait{belfrytest.Hedges}},
		{"three hedges", hedge.Config{Delay: time.Millisecond, MaxHedges: 3}, streams, []belfrytest.Trait{belfrytest.Hedges}},
		{"percentile", hedge.Config{Percentile: 0.5, MinSamples: 1, Period: 5 * time.Millisecond}, streams, []belfrytest.Trait{belfrytest.Hedges}},
		{"waiting for losers", hedge.Config{Delay: time.Millisecond, MaxHedges: 2, WaitLosers: true}, streams, []belfrytest.Trait{belfrytest.Hedges}},
		{"detached", hedge.Config{Delay: time.Millisecond, Detach: true}, belfry.Semantics[int, int]{}, []belfrytest.Trait{belfrytest.Hedges}},
	} {
		t.Run(c.name, func(t *testing.T) {
			belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
				return hedge.New(inner, c.cfg, c.sem), nil
			}, c.traits...)
		})
	}
}
