package belfry_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/belfry-go/belfry"
)

func TestAround(t *testing.T) {
	type next = belfry.Next[int, string]
	ctx := t.Context()
	run := func(svc *room, f func(context.Context, int, *next) (string, error)) (string, error) {
		return belfry.Do(ctx, belfry.Around[int, string](svc, f), 3)
	}
	t.Run("changes request and response", func(t *testing.T) {
		svc := newRoom(t, 1, echo)
		got, err := run(svc, func(ctx context.Context, req int, n *next) (string, error) {
			res, err := n.Call(ctx, req+1)
			return "<" + res + ">", err
		})
		if got != "<4>" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("an unused next gives its room back", func(t *testing.T) {
		svc := newRoom(t, 1, echo)
		got, err := run(svc, func(context.Context, int, *next) (string, error) { return "cached", nil })
		if got != "cached" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		svc.wantFree(1)
	})
	t.Run("a second use, and one after the end, is an error", func(t *testing.T) {
		svc := newRoom(t, 1, echo)
		var kept *next
		_, err := run(svc, func(ctx context.Context, req int, n *next) (string, error) {
			kept = n
			_, _ = n.Call(ctx, req)
			return n.Call(ctx, req)
		})
		if !errors.Is(err, belfry.ErrSpent) {
			t.Errorf("second: %v", err)
		}
		_, _ = run(svc, func(_ context.Context, _ int, n *next) (string, error) { kept = n; return "", nil })
		if _, err := kept.Call(ctx, 1); !errors.Is(err, belfry.ErrSpent) {
			t.Errorf("late: %v", err)
		}
		svc.wantFree(1)
	})
	t.Run("a panic and Goexit give the room back", func(t *testing.T) {
		svc := newRoom(t, 1, echo)
		for name, end := range map[string]func(){"panic": func() { panic("x") }, "Goexit": runtime.Goexit} {
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { _ = recover() }()
				_, _ = run(svc, func(context.Context, int, *next) (string, error) { end(); return "", nil })
			})
			wg.Wait()
			if svc.free.Load() != 1 {
				t.Errorf("%s leaks", name)
			}
		}
	})
	t.Run("a rejection met after sending is not this call's", func(t *testing.T) {
		full := newRoom(t, 0, echo)
		_, err := run(newRoom(t, 1, echo), func(ctx context.Context, req int, n *next) (string, error) {
			_, _ = n.Call(ctx, req)
			return belfry.TryDo(ctx, full, req)
		})
		if err == nil || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
		_, err = run(newRoom(t, 1, echo), func(ctx context.Context, req int, _ *next) (string, error) {
			return belfry.TryDo(ctx, full, req)
		})
		if !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("nothing sent: got %v", err)
		}
	})
	t.Run("a refusal by a late layer inside stays one", func(t *testing.T) {
		if _, err := belfry.Do(ctx, belfry.Around(belfry.Service[int, string](lateRefusal{}), pass), 3); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a call that is still running has been sent", func(t *testing.T) {
		started, finish := make(chan struct{}), make(chan struct{})
		svc := newRoom(t, 1, func(ctx context.Context, req int) (string, error) {
			close(started)
			<-finish
			return echo(ctx, req)
		})
		var wg sync.WaitGroup
		_, err := run(svc, func(ctx context.Context, req int, n *next) (string, error) {
			wg.Go(func() { _, _ = n.Call(ctx, req) })
			<-started
			return "", belfry.ErrNotReady
		})
		if err == nil || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
		close(finish)
		wg.Wait()
		svc.wantFree(1)
	})
}

// A lateRefusal refuses inside Call, as a late layer does.
type lateRefusal struct{}

func (lateRefusal) Acquire(context.Context) (belfry.Permit, error) { return belfry.Permit{}, nil }
func (lateRefusal) Release(belfry.Permit)                          {}

func (lateRefusal) Call(context.Context, belfry.Permit, int) (string, error) {
	return "", &belfry.Rejection{Layer: "late", Err: belfry.ErrNotReady}
}

func pass(ctx context.Context, req int, next *belfry.Next[int, string]) (string, error) {
	return next.Call(ctx, req)
}
