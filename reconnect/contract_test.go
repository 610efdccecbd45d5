package reconnect_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/reconnect"
)

func TestContract(t *testing.T) {
	for _, c := range []struct {
		name   string
		dial   time.Duration
		cfg    reconnect.Config
		traits []belfrytest.Trait
	}{
		{"made at once", 0, reconnect.Config{MinBackoff: time.Second}, nil},
		{"made slowly, and waited for", time.Second, reconnect.Config{MinBackoff: time.Second, Wait: true}, []belfrytest.Trait{belfrytest.Reorders}},
	} {
		t.Run(c.name, func(t *testing.T) {
			belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
				svc := reconnect.New(func(ctx context.Context) (belfry.Service[int, int], error) {
					timer := time.NewTimer(c.dial)
					defer timer.Stop()
					select {
					case <-timer.C:
						return inner, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}, c.cfg)
				return svc, func() { _ = svc.Close() }
			}, append(c.traits, belfrytest.Recovers)...)
		})
	}
}
