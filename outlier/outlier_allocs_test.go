//go:build !race

package outlier_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/outlier"
)

func TestAllocs(t *testing.T) {
	svc := outlier.New(belfry.Of(func(_ context.Context, n int) (int, error) { return n, nil }), outlier.NewDetector(outlier.Config{Latency: 3}), nil)
	ctx := t.Context()
	if n := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(ctx, svc, 1) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
