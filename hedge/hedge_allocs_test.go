//go:build !race

package hedge_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/hedge"
)

func TestAllocs(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  hedge.Config
		want float64
	}{
		"with a delay":          {hedge.Config{Delay: time.Hour}, 3},
		"without a percentile":  {hedge.Config{Period: time.Hour}, 0},
		"with a retry's budget": {hedge.Config{Delay: time.Hour, NoDeposit: true}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			belfrytest.Allocs(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
				return hedge.New(inner, c.cfg), nil
			}, c.want)
		})
	}
	t.Run("streamed", func(t *testing.T) {
		doc := &document{}
		svc := hedge.New(belfry.Of(func(context.Context, string) (*document, error) { return doc, nil }), hedge.Config{Delay: time.Hour}, documents)
		if got := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(context.Background(), svc, "") }); got > 4 {
			t.Errorf("%v allocations, want at most 4", got)
		}
	})
}
