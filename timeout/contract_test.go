package timeout_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/timeout"
)

func TestContract(t *testing.T) {
	immediate := belfry.Semantics[int, int]{Until: func(res int, done func()) int { done(); return res }}
	for _, c := range []struct {
		name string
		d    time.Duration
		cfg  timeout.Config
		sem  belfry.Semantics[int, int]
	}{
		{"far away", 24 * time.Hour, timeout.Config{}, belfry.Semantics[int, int]{}},
		{"far away, with Wait", 24 * time.Hour, timeout.Config{Wait: true}, belfry.Semantics[int, int]{}},
		{"near", 50 * time.Millisecond, timeout.Config{}, belfry.Semantics[int, int]{}},
		{"near, with Wait", 50 * time.Millisecond, timeout.Config{Wait: true}, belfry.Semantics[int, int]{}},
		{"near, streamed", 50 * time.Millisecond, timeout.Config{Wait: true}, immediate},
	} {
		t.Run(c.name, func(t *testing.T) {
			var traits []belfrytest.Trait
			if c.d < time.Hour {
				traits = append(traits, belfrytest.TimesOut)
			}
			belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
				return timeout.New(inner, c.d, c.cfg, c.sem), nil
			}, traits...)
		})
	}
}
