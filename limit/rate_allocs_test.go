//go:build !race

package limit_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

func TestAllocsRate(t *testing.T) {
	ctx := t.Context()
	svc := limit.NewRate(belfry.Of(length), limit.NewRateLimiter(1_000_000, time.Millisecond, limit.RateConfig{}))
	for name, f := range map[string]func(){
		"a call":        func() { _, _ = belfry.Do(ctx, svc, "") },
		"a reservation": func() { permit, _ := svc.Acquire(ctx); svc.Release(permit) },
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

func TestAllocsRatePerKey(t *testing.T) {
	ctx := t.Context()
	l := limit.NewKeyedLimiter[string](1_000_000, time.Millisecond, limit.KeyedConfig{})
	svc := limit.NewRatePerKey(belfry.Of(length), l, itself)
	if n := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(ctx, svc, "key") }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestAllocsAdaptive(t *testing.T) {
	ctx := t.Context()
	svc := limit.NewAdaptive(belfry.Of(length), limit.NewAdaptiveLimiter(limit.AdaptiveConfig{Window: time.Millisecond}))
	if n := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(ctx, svc, "") }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
