package belfry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
)

func TestDo(t *testing.T) {
	ctx := t.Context()
	t.Run("U8 DX4 a function is a service", func(t *testing.T) {
		got, err := belfry.Do(ctx, belfry.Of(echo), 42)
		if got != "42" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("U7 waits until the service is ready, then calls once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var order []string
			svc := &spy{note: func(s string) { order = append(order, s) }, ready: make(chan struct{})}
			ended := make(chan error)
			go func() {
				_, err := belfry.Do(t.Context(), svc, 1)
				ended <- err
			}()
			synctest.Wait()
			if got := fmt.Sprint(order); got != "[acquire]" {
				t.Errorf("not ready: got %s", got)
			}
			close(svc.ready)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if got := fmt.Sprint(order); got != "[acquire call]" {
				t.Errorf("ready: got %s", got)
			}
		})
	})
	t.Run("a context that is done sends nothing and keeps its error", func(t *testing.T) {
		dead, cancel := context.WithCancel(ctx)
		cancel()
		svc := belfry.Of(func(context.Context, int) (string, error) { t.Error("called"); return "", nil })
		for name, do := range map[string]func(context.Context, belfry.Service[int, string], int) (string, error){"Do": belfry.Do[int, string], "TryDo": belfry.TryDo[int, string]} {
			if _, err := do(dead, svc, 1); !errors.Is(err, context.Canceled) || !errors.Is(err, belfry.ErrRejected) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	t.Run("an error of Acquire is a refusal that keeps its cause", func(t *testing.T) {
		r := newRoom(t, 1, echo)
		r.err = errBoom
		_, err := belfry.Do(ctx, r, 1)
		if !errors.Is(err, belfry.ErrRejected) || !errors.Is(err, errBoom) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("TryDo acquires under NoWait and calls under its context", func(t *testing.T) {
		type key struct{}
		ctx := context.WithValue(ctx, key{}, "v")
		svc := newRoom(t, 1, func(ctx context.Context, _ int) (string, error) {
			if ctx.Err() != nil {
				t.Error("the call's context is done")
			}
			return ctx.Value(key{}).(string), nil
		})
		if got, err := belfry.TryDo(ctx, svc, 1); got != "v" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		svc.free.Store(0)
		if _, err := belfry.TryDo(ctx, svc, 1); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("full: got %v", err)
		}
	})
	t.Run("Do under NoWait sends nothing", func(t *testing.T) {
		if _, err := belfry.Do(belfry.NoWait(ctx), belfry.Of(echo), 1); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
	})
}

// A spy notes what is asked of it and is ready once its channel is closed.
type spy struct {
	note  func(string)
	ready chan struct{}
}

func (s *spy) Acquire(ctx context.Context) (belfry.Permit, error) {
	s.note("acquire")
	select {
	case <-s.ready:
		return belfry.Permit{}, nil
	case <-ctx.Done():
		return belfry.Permit{}, ctx.Err()
	}
}

func (s *spy) Call(context.Context, belfry.Permit, int) (string, error) {
	s.note("call")
	return "", nil
}
func (s *spy) Release(belfry.Permit) { s.note("release") }

func TestAcquireLate(t *testing.T) {
	waits := func(ctx context.Context) bool { return ctx.Err() == nil }
	var saw context.Context
	svc := acquireFunc(func(ctx context.Context) error { saw = ctx; return nil })
	if _, err := belfry.AcquireLate(t.Context(), "late", svc); err != nil || !waits(saw) {
		t.Errorf("plain: %v", err)
	}
	if _, err := belfry.AcquireLate(attempt.Hedge(t.Context()), "late", svc); err != nil || waits(saw) {
		t.Errorf("a hedge's extra attempt waits: %v", err)
	}
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	saw = nil
	_, err := belfry.AcquireLate(dead, "late", svc)
	if saw != nil || !errors.Is(err, context.Canceled) || !errors.Is(err, belfry.ErrRejected) {
		t.Errorf("done: %v", err)
	}
	failing := acquireFunc(func(context.Context) error { return errBoom })
	_, err = belfry.AcquireLate(t.Context(), "late", failing)
	if r, ok := errors.AsType[*belfry.Rejection](err); !ok || r.Layer != "late" || !errors.Is(err, errBoom) {
		t.Errorf("failing: %v", err)
	}
}

type acquireFunc func(context.Context) error

func (f acquireFunc) Acquire(ctx context.Context) (belfry.Permit, error) {
	return belfry.Permit{}, f(ctx)
}
func (f acquireFunc) Call(context.Context, belfry.Permit, int) (string, error) { return "", nil }
func (f acquireFunc) Release(belfry.Permit)                                    {}
