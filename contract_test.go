package belfry_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
)

// What wraps a service here keeps the contract as any layer does.
func TestContract(t *testing.T) {
	type service = belfry.Service[int, int]
	for name, wrap := range map[string]func(service) service{
		"Around": func(inner service) service {
			return belfry.Around(inner, func(ctx context.Context, req int, next *belfry.Next[int, int]) (int, error) {
				return next.Call(ctx, req)
			})
		},
		"maps": func(inner service) service {
			inner = belfry.MapRequest(inner, func(req int) int { return req })
			inner = belfry.MapResponse(inner, func(res int) int { return res })
			return belfry.MapError(inner, func(err error) error { return err })
		},
		"Then": func(inner service) service {
			return belfry.Then(inner, func(_ context.Context, res int, err error) (int, error) { return res, err })
		},
	} {
		t.Run(name, func(t *testing.T) {
			belfrytest.TestLayer(t, func(_ testing.TB, inner service) (service, func()) { return wrap(inner), nil })
		})
	}
	for _, took := range []time.Duration{0, 2 * time.Second} {
		t.Run("Lazy, made in "+took.String(), func(t *testing.T) {
			belfrytest.TestLayer(t, func(_ testing.TB, inner service) (service, func()) {
				l := belfry.NewLazy(func(ctx context.Context) (service, error) {
					select {
					case <-time.After(took):
						return inner, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				})
				return l, func() { _ = l.Close() }
			})
		})
	}
}
