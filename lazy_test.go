package belfry_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
)

type maker = func(context.Context) (belfry.Service[int, string], error)

// takes returns a maker of svc that takes d.
func takes(d time.Duration, svc belfry.Service[int, string]) maker {
	return func(ctx context.Context) (belfry.Service[int, string], error) {
		select {
		case <-time.After(d):
			return svc, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lazily runs f in a bubble over a Lazy, which it closes.
func lazily(t *testing.T, create maker, f func(t *testing.T, l *belfry.Lazy[int, string])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := belfry.NewLazy(create)
		defer l.Close()
		f(t, l)
	})
}

func TestLazy(t *testing.T) {
	t.Run("DX7 is usable when it is made", func(t *testing.T) {
		lazily(t, takes(time.Minute, belfry.Of(echo)), func(t *testing.T, l *belfry.Lazy[int, string]) {
			begin := time.Now()
			if got, err := belfry.Do(t.Context(), l, 42); got != "42" || err != nil || time.Since(begin) != time.Minute {
				t.Errorf("got %q, %v after %v", got, err, time.Since(begin))
			}
			if got, err := belfry.TryDo(t.Context(), l, 43); got != "43" || err != nil {
				t.Errorf("then %q, %v", got, err)
			}
		})
	})

	t.Run("is made once, when it is asked for, and for all", func(t *testing.T) {
		var makings atomic.Int32
		slow := takes(time.Minute, belfry.Of(echo))
		lazily(t, func(ctx context.Context) (belfry.Service[int, string], error) {
			makings.Add(1)
			return slow(ctx)
		}, func(t *testing.T, l *belfry.Lazy[int, string]) {
			synctest.Wait()
			if makings.Load() != 0 {
				t.Error("made before anybody asked")
			}
			var callers sync.WaitGroup
			for range 10 {
				callers.Go(func() {
					if _, err := belfry.Do(t.Context(), l, 1); err != nil {
						t.Error(err)
					}
				})
			}
			callers.Wait()
			if makings.Load() != 1 {
				t.Errorf("made %d times", makings.Load())
			}
		})
	})

	t.Run("making goes on when all callers have left, and does not wait under NoWait", func(t *testing.T) {
		lazily(t, takes(time.Minute, belfry.Of(echo)), func(t *testing.T, l *belfry.Lazy[int, string]) {
			if _, err := belfry.TryDo(t.Context(), l, 1); !errors.Is(err, belfry.ErrNotReady) {
				t.Errorf("got %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := belfry.Do(ctx, l, 1)
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, belfry.ErrRejected) || errors.Is(err, belfry.ErrClosed) {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Minute)
			if got, err := belfry.TryDo(t.Context(), l, 2); got != "2" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	})

	t.Run("readiness is that of the service", func(t *testing.T) {
		r := newRoom(t, 1, echo)
		lazily(t, takes(0, r), func(t *testing.T, l *belfry.Lazy[int, string]) {
			p, err := l.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Acquire(t.Context()); !errors.Is(err, belfry.ErrNotReady) {
				t.Errorf("got %v", err)
			}
			l.Release(p)
			r.wantFree(1)
		})
	})
}

func TestLazyFailure(t *testing.T) {
	for _, c := range []struct {
		name   string
		create maker
		cause  error // nil if it is not known here
		text   string
	}{
		{"D59 an error", func(context.Context) (belfry.Service[int, string], error) { return nil, errBoom }, errBoom, "lazy: could not be made: belfry: closed: boom"},
		{"D59 a panic", func(context.Context) (belfry.Service[int, string], error) { panic(errBoom) }, errBoom, "lazy: could not be made: belfry: closed: panic: boom"},
		{"D59 Goexit", func(context.Context) (belfry.Service[int, string], error) { runtime.Goexit(); return nil, nil }, nil, "lazy: could not be made: belfry: closed: belfry: the goroutine was ended by runtime.Goexit"},
		{"D59 no service", func(context.Context) (belfry.Service[int, string], error) { return nil, nil }, belfry.ErrEmpty, "lazy: could not be made: belfry: closed: belfry: no service"},
		{"D59 a refusal met while making", func(context.Context) (belfry.Service[int, string], error) {
			return nil, errors.Join(errBoom, &belfry.Rejection{Layer: "limit", RetryAfter: time.Second, Err: belfry.ErrNotReady})
		}, errBoom, ""},
	} {
		t.Run(c.name+" is for good", func(t *testing.T) {
			lazily(t, c.create, func(t *testing.T, l *belfry.Lazy[int, string]) {
				for range 3 {
					_, err := belfry.Do(t.Context(), l, 1)
					if !errors.Is(err, belfry.ErrClosed) || errors.Is(err, belfry.ErrNotReady) || c.cause != nil && !errors.Is(err, c.cause) {
						t.Errorf("got %v", err)
					}
					if c.text != "" && err.Error() != c.text {
						t.Errorf("got %q, want %q", err, c.text)
					}
					if r, ok := errors.AsType[*belfry.Rejection](err); !ok || r.Layer != "lazy" || belfry.RetryAfter(err) != 0 {
						t.Errorf("got %v", err)
					}
				}
			})
		})
	}

	t.Run("a panic keeps its stack", func(t *testing.T) {
		lazily(t, func(context.Context) (belfry.Service[int, string], error) { panic("x") }, func(t *testing.T, l *belfry.Lazy[int, string]) {
			_, err := l.Acquire(t.Context())
			if p, ok := errors.AsType[*belfry.PanicError](err); !ok || p.Value != "x" || !strings.Contains(string(p.Stack), "lazy_test.go") {
				t.Errorf("got %v", err)
			}
		})
	})

	t.Run("the context of what was not made ends", func(t *testing.T) {
		var life context.Context
		lazily(t, func(ctx context.Context) (belfry.Service[int, string], error) { life = ctx; return nil, errBoom }, func(t *testing.T, l *belfry.Lazy[int, string]) {
			_, _ = l.Acquire(t.Context())
			synctest.Wait()
			if life.Err() == nil {
				t.Error("goes on")
			}
		})
	})
}

// A closable service notes that it was closed.
type closable struct {
	belfry.Service[int, string]
	closed atomic.Int32
	end    func()
}

func (c *closable) Close() error {
	c.closed.Add(1)
	if c.end != nil {
		c.end()
	}
	return errBoom
}

func TestLazyClose(t *testing.T) {
	t.Run("ends the making and refuses those who wait", func(t *testing.T) {
		lazily(t, takes(time.Hour, belfry.Of(echo)), func(t *testing.T, l *belfry.Lazy[int, string]) {
			ended := make(chan error, 1)
			go func() {
				_, err := belfry.Do(t.Context(), l, 1)
				ended <- err
			}()
			synctest.Wait()
			begin := time.Now()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; !errors.Is(err, belfry.ErrClosed) || time.Since(begin) != 0 {
				t.Errorf("got %v after %v", err, time.Since(begin))
			}
		})
	})

	t.Run("does not leave those who wait to a function that does not notice", func(t *testing.T) {
		late := &closable{Service: belfry.Of(echo)}
		lazily(t, func(context.Context) (belfry.Service[int, string], error) { time.Sleep(time.Hour); return late, nil }, func(t *testing.T, l *belfry.Lazy[int, string]) {
			begin := time.Now()
			ended := make(chan time.Duration, 1)
			go func() {
				_, err := belfry.Do(t.Context(), l, 1)
				if !errors.Is(err, belfry.ErrClosed) {
					t.Errorf("got %v", err)
				}
				ended <- time.Since(begin)
			}()
			synctest.Wait()
			err := l.Close()
			if after := <-ended; after != 0 {
				t.Errorf("waited %v", after)
			}
			if !errors.Is(err, errBoom) || late.closed.Load() != 1 || time.Since(begin) != time.Hour {
				t.Errorf("got %v; what came too late was closed %d times", err, late.closed.Load())
			}
		})
	})

	t.Run("closes the service once, and lets calls with a permit go on", func(t *testing.T) {
		c := &closable{Service: newRoom(t, 1, echo)}
		lazily(t, takes(0, c), func(t *testing.T, l *belfry.Lazy[int, string]) {
			r, err := belfry.Reserve(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); !errors.Is(err, errBoom) {
				t.Errorf("got %v", err)
			}
			if err := l.Close(); err != nil || c.closed.Load() != 1 {
				t.Errorf("again: %v, closed %d times", err, c.closed.Load())
			}
			if _, err := l.Acquire(t.Context()); !errors.Is(err, belfry.ErrClosed) {
				t.Errorf("got %v", err)
			}
			if got, err := r.Call(t.Context(), 7); got != "7" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	})

	t.Run("a panic of the service's Close is an error", func(t *testing.T) {
		c := &closable{Service: belfry.Of(echo), end: func() { panic("x") }}
		lazily(t, takes(0, c), func(t *testing.T, l *belfry.Lazy[int, string]) {
			_, _ = belfry.Do(t.Context(), l, 1)
			if p, ok := errors.AsType[*belfry.PanicError](l.Close()); !ok || p.Value != "x" {
				t.Errorf("got %v", p)
			}
		})
	})

	t.Run("of one that nobody has asked for makes nothing", func(t *testing.T) {
		lazily(t, func(context.Context) (belfry.Service[int, string], error) { t.Error("made"); return nil, nil }, func(t *testing.T, l *belfry.Lazy[int, string]) {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if _, err := l.Acquire(t.Context()); !errors.Is(err, belfry.ErrClosed) || !errors.Is(err, belfry.ErrRejected) {
				t.Errorf("got %v", err)
			}
		})
	})

	t.Run("of one that has failed keeps the cause", func(t *testing.T) {
		lazily(t, func(context.Context) (belfry.Service[int, string], error) { return nil, errBoom }, func(t *testing.T, l *belfry.Lazy[int, string]) {
			_, _ = l.Acquire(t.Context())
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if _, err := l.Acquire(t.Context()); !errors.Is(err, errBoom) {
				t.Errorf("got %v", err)
			}
		})
	})

	t.Run("at any moment of the making", func(t *testing.T) {
		for range 200 {
			c := &closable{Service: belfry.Of(echo)}
			l := belfry.NewLazy(func(context.Context) (belfry.Service[int, string], error) { return c, nil })
			var callers sync.WaitGroup
			for range 4 {
				callers.Go(func() {
					if _, err := belfry.Do(t.Context(), l, 1); err != nil && !errors.Is(err, belfry.ErrClosed) {
						t.Error(err)
					}
				})
			}
			runtime.Gosched()
			err := l.Close()
			if closed := c.closed.Load(); closed > 1 || (closed == 1) != errors.Is(err, errBoom) {
				t.Errorf("closed %d times: %v", closed, err)
			}
			callers.Wait()
		}
	})

	t.Run("a Lazy of nothing panics", func(t *testing.T) {
		defer func() {
			if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), "must not be nil") {
				t.Errorf("got %v", err)
			}
		}()
		belfry.NewLazy[int, string](nil)
	})
}

func TestOptional(t *testing.T) {
	r := newRoom(t, 1, echo)
	if svc := belfry.Optional[int, string](r); svc != belfry.Service[int, string](r) {
		t.Errorf("got %v", svc)
	}
	none := belfry.Optional[int, string](nil)
	for range 2 {
		_, err := belfry.Do(t.Context(), none, 1)
		if !errors.Is(err, belfry.ErrClosed) || !errors.Is(err, belfry.ErrEmpty) || errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
		if want := "optional: empty: belfry: closed: belfry: no service"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}
