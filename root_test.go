package belfry_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
)

// A room is a service with n places over f; it counts what it has given out and fails the test on a double spend.
type room struct {
	t    *testing.T
	free atomic.Int64
	held sync.Map // *int: held permits
	err  error    // what Acquire fails with, if set
	f    func(ctx context.Context, req int) (string, error)
}

func newRoom(t *testing.T, n int64, f func(context.Context, int) (string, error)) *room {
	r := &room{t: t, f: f}
	r.free.Store(n)
	return r
}

func echo(_ context.Context, req int) (string, error) { return strconv.Itoa(req), nil }

func (r *room) Acquire(ctx context.Context) (belfry.Permit, error) {
	if r.err != nil {
		return belfry.Permit{}, r.err
	}
	if r.free.Add(-1) < 0 {
		r.free.Add(1)
		return belfry.Permit{}, &belfry.Rejection{Layer: "room", Err: belfry.ErrNotReady}
	}
	p := new(int)
	r.held.Store(p, true)
	return belfry.NewPermit(p), nil
}

func (r *room) spend(p belfry.Permit) {
	if _, ok := r.held.LoadAndDelete(p.Value()); !ok {
		r.t.Errorf("permit %v spent twice, or not of this room", p)
	}
	r.free.Add(1)
}

func (r *room) Call(ctx context.Context, p belfry.Permit, req int) (string, error) {
	defer r.spend(p)
	return r.f(ctx, req)
}
func (r *room) Release(p belfry.Permit) { r.spend(p) }

func (r *room) wantFree(n int64) {
	r.t.Helper()
	if got := r.free.Load(); got != n {
		r.t.Errorf("%d places free, want %d", got, n)
	}
}

var errBoom = errors.New("boom")

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

func TestErrors(t *testing.T) {
	for _, err := range []error{belfry.ErrNotReady, belfry.ErrClosed, &belfry.Rejection{Layer: "x"}} {
		if !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("%v does not match ErrRejected", err)
		}
	}
	if errors.Is(belfry.ErrNotReady, belfry.ErrClosed) || errors.Is(belfry.ErrRejected, belfry.ErrNotReady) || errors.Is(belfry.ErrSpent, belfry.ErrRejected) {
		t.Error("a condition matches one that it does not imply")
	}
	t.Run("a rejection says who, why, how full and when again", func(t *testing.T) {
		err := &belfry.Rejection{Layer: "limit", Reason: "full", InFlight: 50, Limit: 50, RetryAfter: time.Second, Err: belfry.ErrNotReady}
		const want = "limit: full (50 of 50 in flight), retry after 1s: belfry: not ready"
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
		wrapped := fmt.Errorf("calling: %w", err)
		if got, ok := errors.AsType[*belfry.Rejection](wrapped); !ok || got.Limit != 50 || belfry.RetryAfter(wrapped) != time.Second {
			t.Errorf("AsType: %v, %v", got, ok)
		}
	})
	t.Run("Refuse leaves a refusal to whoever made it", func(t *testing.T) {
		inner := &belfry.Rejection{Layer: "limit"}
		if got := belfry.Refuse("outer", inner); got != error(inner) {
			t.Errorf("got %v", got)
		}
		if belfry.Refuse("outer", nil) != nil {
			t.Error("nil became an error")
		}
	})
	t.Run("Sent hides the refusal and nothing else", func(t *testing.T) {
		err := belfry.Sent(errors.Join(errBoom, &belfry.Rejection{Layer: "limit", Err: belfry.ErrNotReady}, belfry.ErrClosed))
		for _, hidden := range []error{belfry.ErrRejected, belfry.ErrNotReady, belfry.ErrClosed} {
			if errors.Is(err, hidden) {
				t.Errorf("matches %v", hidden)
			}
		}
		if _, ok := errors.AsType[*belfry.Rejection](err); ok {
			t.Error("holds a Rejection")
		}
		if !errors.Is(err, errBoom) || !errors.Is(fmt.Errorf("w: %w", err), errBoom) {
			t.Error("lost its cause")
		}
		if belfry.Sent(errBoom) != errBoom || belfry.Sent(nil) != nil {
			t.Error("changed an error that was no refusal")
		}
		full := fmt.Errorf("full: %w", belfry.ErrNotReady) // as a layer names its own refusals
		if err := belfry.Sent(errors.Join(full, errBoom)); errors.Is(err, full) || !errors.Is(err, errBoom) {
			t.Error("matches a condition that implies a refusal")
		}
	})
	t.Run("Func is a border", func(t *testing.T) {
		inner := newRoom(t, 0, echo)
		svc := belfry.Of(func(ctx context.Context, req int) (string, error) { return belfry.TryDo(ctx, inner, req) })
		if _, err := belfry.Do(t.Context(), svc, 1); err == nil || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
	})
}

func TestNoWait(t *testing.T) {
	nw := belfry.NoWait(t.Context())
	select {
	case <-nw.Done():
	default:
		t.Error("not done")
	}
	t.Run("survives derived contexts", func(t *testing.T) {
		type key struct{}
		d1, cancel1 := context.WithTimeout(context.WithValue(nw, key{}, 1), time.Hour)
		defer cancel1()
		d2, cancel2 := context.WithCancel(d1)
		defer cancel2()
		if !errors.Is(d2.Err(), belfry.ErrNotReady) {
			t.Errorf("got %v", d2.Err())
		}
		if again := belfry.NoWait(d2); again != d2 {
			t.Error("marked a second time")
		}
	})
	t.Run("keeps the attempt set and no other value", func(t *testing.T) {
		type key struct{}
		ctx := &attempt.Context{Context: context.WithValue(t.Context(), key{}, 1)}
		if got := belfry.NoWait(ctx); attempt.From(got) != nil {
			t.Error("an empty set was kept")
		}
		ctx.Set.Add(new(int))
		got := belfry.NoWait(ctx)
		if attempt.From(got) != &ctx.Set || got.Value(key{}) != nil {
			t.Errorf("set %p want %p, value %v", attempt.From(got), &ctx.Set, got.Value(key{}))
		}
	})
}

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

func TestMaps(t *testing.T) {
	ctx := t.Context()
	t.Run("DX5 each map changes the types it should", func(t *testing.T) {
		base := newRoom(t, 1, echo)
		bytes := belfry.MapRequest(base, func(s string) int { return len(s) })
		length := belfry.MapResponse(bytes, func(s string) int { return len(s) * 10 })
		text := belfry.AndThen(length, func(_ context.Context, n int) (string, error) { return fmt.Sprint("n=", n), nil })
		both := belfry.Then(text, func(_ context.Context, s string, err error) (string, error) { return s + "!", err })
		last := belfry.MapResult(both, func(s string, err error) ([]byte, error) { return []byte(s), err })
		got, err := belfry.Do(ctx, last, "hello")
		if string(got) != "n=10!" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("errors pass response maps by and reach result maps", func(t *testing.T) {
		base := newRoom(t, 1, func(context.Context, int) (string, error) { return "", errBoom })
		never := func(context.Context, string) (string, error) { t.Error("called for an error"); return "", nil }
		if _, err := belfry.Do(ctx, belfry.AndThen(base, never), 1); err != errBoom {
			t.Errorf("AndThen: %v", err)
		}
		if _, err := belfry.Do(ctx, belfry.MapResponse(base, func(string) string { t.Error("called"); return "" }), 1); err != errBoom {
			t.Errorf("MapResponse: %v", err)
		}
		got, err := belfry.Do(ctx, belfry.MapResult(base, func(_ string, err error) (string, error) { return err.Error(), nil }), 1)
		if got != "boom" || err != nil {
			t.Errorf("MapResult: %q, %v", got, err)
		}
	})
	t.Run("a panic in MapRequest gives the room back", func(t *testing.T) {
		base := newRoom(t, 1, echo)
		svc := belfry.MapRequest(base, func(int) int { panic("x") })
		func() {
			defer func() { _ = recover() }()
			_, _ = belfry.Do(ctx, svc, 1)
		}()
		base.wantFree(1)
	})
	t.Run("MapError keeps what an error says about sending", func(t *testing.T) {
		nice := errors.New("try later")
		full := belfry.MapError[int, string](newRoom(t, 0, echo), func(error) error { return nice })
		_, err := belfry.TryDo(ctx, full, 1)
		if !errors.Is(err, nice) || !errors.Is(err, belfry.ErrNotReady) || err.Error() != "try later" {
			t.Errorf("refused: %v", err)
		}
		failing := newRoom(t, 1, func(context.Context, int) (string, error) { return "", errBoom })
		_, err = belfry.Do(ctx, belfry.MapError[int, string](failing, func(error) error { return belfry.ErrNotReady }), 1)
		if err == nil || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("sent: %v", err)
		}
		_, err = belfry.Do(ctx, belfry.MapError[int, string](failing, func(error) error { return nil }), 1)
		if err != errBoom {
			t.Errorf("nil: %v", err)
		}
	})
	t.Run("a rejection on the way back is not this call's", func(t *testing.T) {
		svc := belfry.Then(newRoom(t, 1, echo), func(context.Context, string, error) (string, error) { return "", belfry.ErrNotReady })
		if _, err := belfry.Do(ctx, svc, 1); err == nil || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a refusal by a late layer inside stays one", func(t *testing.T) {
		errNamed := errors.New("named")
		svc := belfry.MapResult(belfry.Service[int, string](lateRefusal{}), func(res string, err error) (string, error) { return res, errors.Join(errNamed, err) })
		if _, err := belfry.Do(ctx, svc, 1); !errors.Is(err, belfry.ErrNotReady) || !errors.Is(err, errNamed) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a held reservation passes through", func(t *testing.T) {
		base := newRoom(t, 1, echo)
		svc := belfry.MapResponse(belfry.MapRequest(base, func(i int) int { return i }), func(s string) string { return s })
		r, err := belfry.Reserve(ctx, svc)
		if err != nil {
			t.Fatal(err)
		}
		base.wantFree(0)
		r.Release()
		base.wantFree(1)
	})
}

func TestSemantics(t *testing.T) {
	var zero belfry.Semantics[int, string]
	cancelled := fmt.Errorf("get: %w", context.Canceled)
	for _, c := range []struct {
		name string
		err  error
		want belfry.Outcome
	}{
		{"no error", nil, belfry.Outcome{Kind: belfry.Success}},
		{"an error", errBoom, belfry.Outcome{Kind: belfry.Failure, Retry: true}},
		{"deadline", context.DeadlineExceeded, belfry.Outcome{Kind: belfry.Failure, Retry: true}},
		{"the caller left", cancelled, belfry.Outcome{Kind: belfry.Ignored}},
		{"a refusal", &belfry.Rejection{Layer: "x", RetryAfter: time.Second}, belfry.Outcome{Kind: belfry.Ignored, RetryAfter: time.Second}},
	} {
		if got := zero.Judge("", c.err); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	if req, ok := zero.Replay(5); req != 5 || !ok {
		t.Errorf("Replay: %d, %v", req, ok)
	}
	t.Run("done is called once, at the end of the call", func(t *testing.T) {
		var dones int
		done := func() { dones++ }
		zero.Finish("", nil, done)
		if dones != 1 {
			t.Errorf("no Until: %d", dones)
		}
		var end func()
		streaming := belfry.Semantics[int, string]{Until: func(res string, done func()) string { end = done; return res + "+" }}
		if res := streaming.Finish("r", nil, done); res != "r+" || dones != 1 {
			t.Errorf("stream open: %q, %d", res, dones)
		}
		end()
		streaming.Finish("", errBoom, done)
		if dones != 3 {
			t.Errorf("error: %d", dones)
		}
		panicking := belfry.Semantics[int, string]{Until: func(string, func()) string { panic("x") }}
		func() {
			defer func() { _ = recover() }()
			panicking.Finish("", nil, done)
		}()
		if dones != 4 {
			t.Errorf("panic in Until: %d", dones)
		}
	})
	t.Run("a response that Until panics about is ended", func(t *testing.T) {
		var log []string
		sem := belfry.Semantics[int, string]{
			Until:   func(string, func()) string { panic("x") },
			Discard: func(res string) { log = append(log, "discard "+res); panic("y") },
		}
		func() {
			defer func() { _ = recover() }()
			sem.Finish("r", nil, func() { log = append(log, "done") })
		}()
		if got := fmt.Sprint(log); got != "[discard r done]" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("an error has no response to discard", func(t *testing.T) {
		var dropped []string
		sem := belfry.Semantics[int, string]{Discard: func(s string) { dropped = append(dropped, s) }}
		sem.Drop("a", nil)
		sem.Drop("b", errBoom)
		if fmt.Sprint(dropped) != "[a]" {
			t.Errorf("got %v", dropped)
		}
	})
}
