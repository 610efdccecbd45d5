package timeout_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/timeout"
)

func TestWait(t *testing.T) {
	wait := timeout.Config{Wait: true}

	bubble(t, "D52 the wait is bounded too", func(t *testing.T) {
		l := limit.NewLimiter(0)
		svc := timeout.New(limit.NewConcurrency(heedful(0), l), time.Second, wait)
		begin := time.Now()
		_, err := belfry.Do(t.Context(), svc, "")
		took(t, begin, time.Second)
		wantIs(t, err, []error{timeout.Err, context.DeadlineExceeded, belfry.ErrRejected}, belfry.ErrNotReady)
		if r, ok := errors.AsType[*belfry.Rejection](err); !ok || r.Layer != "limit" {
			t.Errorf("who refused is gone: %v", err)
		}
		if s := l.Stats(); s.Waiting != 0 {
			t.Errorf("left behind: %+v", s)
		}
		if got := svc.Stats(); got.Waits != 1 || got.Calls != 0 {
			t.Errorf("got %+v", got)
		}
	})

	bubble(t, "D52 without Wait it is not", func(t *testing.T) {
		svc := timeout.New(limit.NewConcurrency(heedful(0), limit.NewLimiter(0)), time.Second, timeout.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		_, err := belfry.Do(ctx, svc, "")
		took(t, begin, time.Hour)
		wantIs(t, err, []error{belfry.ErrRejected}, timeout.Err)
	})

	bubble(t, "an inner error that is no refusal becomes one", func(t *testing.T) {
		svc := timeout.New[string, string](spy{acquire: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}, time.Second, wait)
		_, err := svc.Acquire(t.Context())
		wantIs(t, err, []error{timeout.Err, context.DeadlineExceeded, belfry.ErrRejected})
		if got, want := err.Error(), "timeout: no room within 1s: timeout: refused: context deadline exceeded"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	bubble(t, "an inner error of its own passes", func(t *testing.T) {
		svc := timeout.New[string, string](spy{acquire: func(context.Context) error { return errBoom }}, time.Second, wait)
		if _, err := svc.Acquire(t.Context()); err != errBoom {
			t.Errorf("got %v", err)
		}
	})

	bubble(t, "the call has what the wait has left", func(t *testing.T) {
		svc := timeout.New[string, string](spy{Service: heedful(time.Hour), acquire: func(context.Context) error {
			pause(600 * time.Millisecond)
			return nil
		}}, time.Second, wait)
		begin := time.Now()
		_, err := belfry.Do(t.Context(), svc, "")
		took(t, begin, time.Second)
		wantIs(t, err, []error{timeout.Err}, belfry.ErrRejected)
	})

	bubble(t, "a permit that is too old is refused, and goes back", func(t *testing.T) {
		l := limit.NewLimiter(1)
		svc := timeout.New(limit.NewConcurrency(heedful(0), l), time.Second, wait)
		for _, age := range []time.Duration{time.Second - 1, time.Second} {
			permit, err := svc.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			pause(age)
			_, err = svc.Call(t.Context(), permit, "")
			if age < time.Second {
				if err != nil {
					t.Error(err)
				}
				continue
			}
			wantIs(t, err, []error{timeout.Err, context.DeadlineExceeded, belfry.ErrRejected})
			if r, ok := errors.AsType[*belfry.Rejection](err); !ok || r.Layer != "timeout" {
				t.Errorf("got %v", err)
			}
		}
		if s := l.Stats(); s.Reserved+s.InFlight != 0 || s.Admitted != 1 {
			t.Errorf("left behind: %+v", s)
		}
		if got := svc.Stats(); got.Calls != 1 {
			t.Errorf("got %+v", got)
		}
	})

	bubble(t, "Release", func(t *testing.T) {
		l := limit.NewLimiter(1)
		svc := timeout.New(limit.NewConcurrency(heedful(0), l), time.Second, wait)
		permit, _ := svc.Acquire(t.Context())
		pause(time.Hour)
		svc.Release(permit)
		if s := l.Stats(); s.Reserved != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})

	bubble(t, "NoWait passes unchanged, and the time counts from there", func(t *testing.T) {
		now := belfry.NoWait(t.Context())
		svc := timeout.New[string, string](spy{Service: heedful(time.Hour), acquire: func(ctx context.Context) error {
			if ctx != now {
				t.Error("the inner service was asked under another context")
			}
			return nil
		}}, time.Second, wait)
		permit, err := svc.Acquire(now)
		if err != nil {
			t.Fatal(err)
		}
		pause(300 * time.Millisecond)
		begin := time.Now()
		_, err = svc.Call(t.Context(), permit, "")
		took(t, begin, 700*time.Millisecond)
		wantIs(t, err, []error{timeout.Err})
	})

	bubble(t, "the caller's cancelling and earlier deadline are the caller's", func(t *testing.T) {
		svc := timeout.New(limit.NewConcurrency(heedful(0), limit.NewLimiter(0)), time.Second, wait)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		_, err := svc.Acquire(ctx)
		wantIs(t, err, []error{context.Canceled, belfry.ErrRejected}, timeout.Err)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = svc.Acquire(ctx)
		wantIs(t, err, []error{context.DeadlineExceeded, belfry.ErrRejected}, timeout.Err)
	})

	bubble(t, "the context of the wait ends with the wait, however it ends", func(t *testing.T) {
		for name, f := range map[string]func() error{
			"success": func() error { return nil },
			"failure": func() error { return errBoom },
			"a panic": func() error { panic(errBoom) },
			"Goexit":  func() error { runtime.Goexit(); return nil },
		} {
			var kept context.Context
			svc := timeout.New[string, string](spy{acquire: func(ctx context.Context) error {
				kept = ctx
				_ = ctx.Done()
				return f()
			}}, time.Second, wait)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { _ = recover() }()
				_, _ = svc.Acquire(t.Context())
			}()
			<-ended
			if err := kept.Err(); err != context.Canceled {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}
