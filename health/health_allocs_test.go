//go:build !race

package health_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/health"
)

func TestAllocs(t *testing.T) {
	ctx := t.Context()
	svc := health.New(belfry.Of(echo), well, health.Config{Interval: time.Hour})
	defer svc.Close()
	if n := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(ctx, svc, 1) }); n != 0 {
		t.Errorf("healthy: %v allocations, want none", n)
	}
	down := health.New(belfry.Of(echo), well, health.Config{Interval: time.Hour, FastInterval: time.Hour, StartUnhealthy: true})
	defer down.Close()
	if n := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(ctx, down, 1) }); n != 1 {
		t.Errorf("unhealthy: %v allocations, want that of the refusal", n)
	}
}
