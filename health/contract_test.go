package health_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/health"
)

func TestContract(t *testing.T) {
	t.Run("well", func(t *testing.T) {
		belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
			svc := health.New(inner, well, health.Config{})
			return svc, func() { svc.Close() }
		})
	})
	t.Run("well and ill by turns", func(t *testing.T) {
		belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
			var n atomic.Int32
			probe := func(context.Context) error {
				if n.Add(1)%8 < 2 {
					return errIll
				}
				return nil
			}
			svc := health.New(inner, probe, health.Config{Interval: 2 * time.Second, Unhealthy: 1, Healthy: 1})
			return svc, func() { svc.Close() }
		}, belfrytest.Refuses)
	})
}
