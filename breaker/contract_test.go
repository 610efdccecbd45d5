package breaker_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/breaker"
)

func TestContract(t *testing.T) {
	for _, c := range []struct {
		name   string
		cfg    breaker.Config
		traits []belfrytest.Trait
	}{
		{"never open", breaker.Config{Consecutive: 1 << 30}, nil},
		{"never open, with a ratio", breaker.Config{Ratio: 1, MinCalls: 1 << 30}, nil},
		{"refuses", breaker.Config{Consecutive: 2, Ratio: 0.5, MinCalls: 4}, []belfrytest.Trait{belfrytest.Refuses}},
		{"waits", breaker.Config{Consecutive: 2, Wait: true, ProbeTimeout: time.Hour}, []belfrytest.Trait{belfrytest.Refuses, belfrytest.Reorders}},
		{"gives probes up", breaker.Config{Consecutive: 1, Wait: true, MinBackoff: time.Millisecond, ProbeTimeout: time.Millisecond}, []belfrytest.Trait{belfrytest.Refuses, belfrytest.Reorders}},
	} {
		t.Run(c.name, func(t *testing.T) {
			belfrytest.TestLayer(t, func(t testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
				svc := breaker.New(inner, c.cfg)
				return svc, func() {
					if s := svc.Stats(); s.Waiting != 0 {
						t.Errorf("left behind: %+v", s)
					}
				}
			}, c.traits...)
		})
	}
}
