package belfrytest

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
)

// Allocs fails t if the layer adds more than n allocations to a successful [belfry.Do] over a function, which has none
// (rule 9). It measures with [testing.AllocsPerRun], so no other test may run at the same time. Under the race detector,
// which allocates for itself, it only logs that it does not measure.
func Allocs(t testing.TB, build Builder, n float64) {
	t.Helper()
	if raceEnabled {
		t.Log("belfrytest: allocations are not counted under the race detector")
		return
	}
	ctx := context.Background()
	svc, stop := build(t, belfry.Of(func(_ context.Context, req int) (int, error) { return -req, nil }))
	if stop != nil {
		defer stop()
	}
	req := 0
	got := testing.AllocsPerRun(200, func() {
		req++
		if res, err := belfry.Do(ctx, svc, req); err != nil || res != -req {
			t.Fatalf("belfrytest: Do(%d) = %d, %v; want a success", req, res, err)
		}
	})
	if got > n {
		t.Errorf("rule 9: a successful call allocates %v times, want at most %v", got, n)
	}
}
