package belfry_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/belfry-go/belfry"
)

func TestReserve(t *testing.T) {
	ctx := t.Context()
	t.Run("D18 room that is held can be given back", func(t *testing.T) {
		svc := newRoom(t, 1, echo)
		r, err := belfry.Reserve(ctx, svc)
		if err != nil {
			t.Fatal(err)
		}
		svc.wantFree(0)
		r.Release()
		svc.wantFree(1)
	})
	t.Run("used twice is an error and frees nobody else's room", func(t *testing.T) {
		svc := newRoom(t, 2, echo)
		r, _ := belfry.Reserve(ctx, svc)
		other, _ := belfry.Reserve(ctx, svc)
		defer other.Release()
		if got, err := r.Call(ctx, 7); got != "7" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := r.Call(ctx, 7); !errors.Is(err, belfry.ErrSpent) {
			t.Errorf("second Call: %v", err)
		}
		r.Release()
		svc.wantFree(1)
	})
	t.Run("refused: the empty reservation is safe", func(t *testing.T) {
		r, err := belfry.Reserve(belfry.NoWait(ctx), newRoom(t, 0, echo))
		if !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
		r.Release()
		if _, err := r.Call(ctx, 1); !errors.Is(err, belfry.ErrSpent) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an error of Acquire is a refusal", func(t *testing.T) {
		svc := newRoom(t, 1, echo)
		svc.err = errBoom
		if _, err := belfry.Reserve(ctx, svc); !errors.Is(err, belfry.ErrRejected) || !errors.Is(err, errBoom) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("of many concurrent uses one counts", func(t *testing.T) {
		svc := newRoom(t, 1, echo)
		r, _ := belfry.Reserve(ctx, svc)
		var wg sync.WaitGroup
		var calls atomic.Int64
		for range 16 {
			wg.Go(func() {
				if _, err := r.Call(ctx, 1); err == nil {
					calls.Add(1)
				}
				r.Release()
			})
		}
		wg.Wait()
		if calls.Load() > 1 {
			t.Errorf("%d calls on one reservation", calls.Load())
		}
		svc.wantFree(1)
	})
}
