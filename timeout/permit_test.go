package timeout_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/timeout"
)

// TestPermits makes sure that the inner service gets its own permit back.
func TestPermits(t *testing.T) {
	for _, cfg := range []timeout.Config{{}, {Wait: true}} {
		inner := &keeper{permit: belfry.NewPermit(new(int))}
		svc := timeout.New(inner, time.Second, cfg)
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		svc.Release(permit)
		if _, err := belfry.Do(t.Context(), svc, ""); err != nil {
			t.Error(err)
		}
		if inner.right != 2 {
			t.Errorf("%+v: %d of 2 permits came back as they were", cfg, inner.right)
		}
	}
}

// A keeper counts how often it gets its permit back.
type keeper struct {
	permit belfry.Permit
	right  int
}

func (k *keeper) Acquire(context.Context) (belfry.Permit, error) { return k.permit, nil }

func (k *keeper) Call(_ context.Context, permit belfry.Permit, req string) (string, error) {
	k.Release(permit)
	return req, nil
}

func (k *keeper) Release(permit belfry.Permit) {
	if permit == k.permit {
		k.right++
	}
}
