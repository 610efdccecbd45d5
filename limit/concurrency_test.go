package limit_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

var errBoom = errors.New("boom")

func TestConcurrency(t *testing.T) {
	run := func(name string, f func(t *testing.T)) {
		t.Helper()
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}

	run("C1 a call that has returned lets the next in", func(t *testing.T) {
		b, inner := newBackend()
		svc := limit.NewConcurrency(inner, limit.NewLimiter(2))
		one, two := call(t.Context(), svc, "hello 1"), call(t.Context(), svc, "hello 2")
		first, second := b.next(t), b.next(t)
		three := acquire(t.Context(), svc)
		pending(t, "third", three)
		first.answer <- "world 1"
		permit := done(t, "third", three)
		four := acquire(t.Context(), svc)
		pending(t, "fourth", four)
		second.answer <- "world 2"
		svc.Release(done(t, "fourth", four).permit)
		got := map[string]bool{done(t, "one", one).res: true, done(t, "two", two).res: true}
		if !got["world 1"] || !got["world 2"] {
			t.Errorf("got %v", got)
		}
		c := make(chan result, 1)
		go func() {
			res, err := svc.Call(t.Context(), permit.permit, "hello 3")
			c <- result{res, err}
		}()
		b.next(t).answer <- "world 3"
		if r := done(t, "call 3", c); r.res != "world 3" || r.err != nil {
			t.Errorf("got %v", r)
		}
		b.none(t)
	})

	run("C2 an answered response whose stream is unread still holds its place", func(t *testing.T) {
		l := limit.NewLimiter(1)
		svc := limit.NewConcurrency(belfry.Of(open), l, streams)
		s, err := belfry.Do(t.Context(), svc, "a")
		if err != nil {
			t.Fatal(err)
		}
		waiter := make(chan error, 1)
		go func() {
			permit, err := svc.Acquire(t.Context())
			if err == nil {
				svc.Release(permit)
			}
			waiter <- err
		}()
		pending(t, "waiter", waiter)
		wantStats(t, l, limit.Stats{Limit: 1, InFlight: 1, Waiting: 1, Admitted: 1})
		s.close()
		if err := done(t, "waiter", waiter); err != nil {
			t.Error(err)
		}
		wantStats(t, l, limit.Stats{Limit: 1, Admitted: 1})
	})

	run("C3 no places admit nobody", func(t *testing.T) {
		_, inner := newBackend()
		svc := limit.NewConcurrency(inner, limit.NewLimiter(0))
		ctx, cancel := context.WithCancel(t.Context())
		c := acquire(ctx, svc)
		time.Sleep(time.Hour)
		pending(t, "acquire", c)
		cancel()
		if got := done(t, "acquire", c); !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, belfry.ErrRejected) {
			t.Errorf("got %v", got.err)
		}
	})

	run("C4 D18 a reservation counts, and can be given back", func(t *testing.T) {
		b, inner := newBackend()
		l := limit.NewLimiter(1)
		svc := limit.NewConcurrency(inner, l)
		r, err := belfry.Reserve(t.Context(), svc)
		if err != nil {
			t.Fatal(err)
		}
		waiter := acquire(t.Context(), svc)
		pending(t, "waiter, beside a reservation", waiter)
		wantStats(t, l, limit.Stats{Limit: 1, Reserved: 1, Waiting: 1})
		answered := make(chan result, 1)
		go func() {
			res, err := r.Call(t.Context(), "hello")
			answered <- result{res, err}
		}()
		q := b.next(t)
		pending(t, "waiter, beside a call", waiter)
		wantStats(t, l, limit.Stats{Limit: 1, InFlight: 1, Waiting: 1, Admitted: 1})
		q.answer <- "world"
		svc.Release(done(t, "waiter", waiter).permit)
		r.Release() // does nothing after Call
		wantStats(t, l, limit.Stats{Limit: 1, Admitted: 1})
	})

	run("C5 D18 Release lets the next in", func(t *testing.T) {
		_, inner := newBackend()
		svc := limit.NewConcurrency(inner, limit.NewLimiter(1))
		permit, _ := svc.Acquire(t.Context())
		waiter := acquire(t.Context(), svc)
		pending(t, "waiter", waiter)
		svc.Release(permit)
		svc.Release(done(t, "waiter", waiter).permit)
	})

	run("C6 a failed call lets the next in", func(t *testing.T) {
		b, inner := newBackend()
		svc := limit.NewConcurrency(inner, limit.NewLimiter(1))
		failed := call(t.Context(), svc, "hello")
		q := b.next(t)
		waiter := acquire(t.Context(), svc)
		pending(t, "waiter", waiter)
		close(q.answer)
		if r := done(t, "call", failed); r.err != errBoom {
			t.Errorf("got %v, want the error itself", r.err)
		}
		svc.Release(done(t, "waiter", waiter).permit)
	})

	run("C7 a cancelled call holds its place until it has returned", func(t *testing.T) {
		linger := make(chan struct{})
		l := limit.NewLimiter(1)
		svc := limit.NewConcurrency(belfry.Of(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			<-linger
			return "", ctx.Err()
		}), l)
		ctx, cancel := context.WithCancel(t.Context())
		c := call(ctx, svc, "hello")
		synctest.Wait()
		waiter := acquire(t.Context(), svc)
		synctest.Wait()
		cancel()
		pending(t, "call", c)
		pending(t, "waiter", waiter)
		close(linger)
		if r := done(t, "call", c); !errors.Is(r.err, context.Canceled) {
			t.Errorf("got %v", r.err)
		}
		svc.Release(done(t, "waiter", waiter).permit)
		wantStats(t, l, limit.Stats{Limit: 1, Admitted: 1})
	})

	run("C8 only the next waiter is woken", func(t *testing.T) {
		_, inner := newBackend()
		l := limit.NewLimiter(1)
		svc := limit.NewConcurrency(inner, l)
		permit, _ := svc.Acquire(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var line []<-chan acquired
		for i := range 4 {
			c := t.Context()
			if i == 1 {
				c = ctx
			}
			line = append(line, acquire(c, svc))
			synctest.Wait()
		}
		svc.Release(permit)
		permit = done(t, "first", line[0]).permit
		pending(t, "second", line[1])
		cancel()
		if err := done(t, "second", line[1]).err; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		svc.Release(permit)
		permit = done(t, "third", line[2]).permit
		pending(t, "fourth", line[3])
		svc.Release(permit)
		svc.Release(done(t, "fourth", line[3]).permit)
		wantStats(t, l, limit.Stats{Limit: 1, Cancelled: 1})
	})

	run("D21 a place held while waiting shows as reserved, and cancelling frees it", func(t *testing.T) {
		l := limit.NewLimiter(1)
		svc := limit.NewConcurrency(closedDoor{}, l)
		ctx, cancel := context.WithCancel(t.Context())
		c := acquire(ctx, svc)
		pending(t, "acquire", c)
		wantStats(t, l, limit.Stats{Limit: 1, Reserved: 1})
		cancel()
		if got := done(t, "acquire", c); got.err != context.Canceled {
			t.Errorf("got %v, want the inner error itself", got.err)
		}
		wantStats(t, l, limit.Stats{Limit: 1})
	})

	run("D21 a shared limiter placed innermost is not held while waiting", func(t *testing.T) {
		b, inner := newBackend()
		shared, door := limit.NewLimiter(1), limit.NewLimiter(0)
		stuck := limit.NewConcurrency(limit.NewConcurrency(inner, shared), door)
		waiting := acquire(t.Context(), stuck)
		pending(t, "a caller of the stuck stack", waiting)
		c := call(t.Context(), limit.NewConcurrency(inner, shared), "hello")
		b.next(t).answer <- "world"
		if r := done(t, "call of the other stack", c); r.err != nil {
			t.Error(r.err)
		}
		if err := door.Resize(1); err != nil {
			t.Error(err)
		}
		stuck.Release(done(t, "the stuck caller", waiting).permit)
	})

	run("D22 a response that is kept holds no place", func(t *testing.T) {
		svc := limit.NewConcurrency(belfry.Of(func(context.Context, int) (*[1 << 20]byte, error) {
			return new([1 << 20]byte), nil
		}), limit.NewLimiter(1))
		var kept []*[1 << 20]byte
		for i := range 3 {
			res, err := belfry.TryDo(t.Context(), svc, i)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, res)
		}
		runtime.KeepAlive(kept)
	})

	run("D50 a limiter is a plain value that services of all types share", func(t *testing.T) {
		l := limit.NewLimiter(1) // on its own, before any service
		words := limit.ConcurrencyLayer[string, string](l)
		_, inner := newBackend()
		a := words(inner)
		b := limit.NewConcurrency(belfry.Of(func(_ context.Context, n int) (int, error) { return n, nil }), l)
		permit, err := a.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := belfry.TryDo(t.Context(), b, 1); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v, want not ready", err)
		}
		a.Release(permit)
		if n, err := belfry.TryDo(t.Context(), b, 1); n != 1 || err != nil {
			t.Errorf("got %v, %v", n, err)
		}
		if got, want := b.Stats(), (limit.Stats{Limit: 1, Admitted: 1, Rejected: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})

	run("D51 a bounded wait ends with an error that says why", func(t *testing.T) {
		b, inner := newBackend()
		l := limit.NewLimiter(1)
		svc := limit.NewConcurrency(inner, l)
		c := call(t.Context(), svc, "hello")
		q := b.next(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := belfry.Do(ctx, svc, "hello")
		if d := time.Since(begin); d != time.Second {
			t.Errorf("waited %v", d)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, belfry.ErrRejected) || errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
		_, err = belfry.TryDo(t.Context(), svc, "hello")
		r, ok := errors.AsType[*belfry.Rejection](err)
		if !ok || !errors.Is(err, belfry.ErrNotReady) {
			t.Fatalf("got %v, want a rejection that is not ready", err)
		}
		if r.Layer != "limit" || r.Reason != "full" || r.InFlight != 1 || r.Limit != 1 {
			t.Errorf("got %+v", r)
		}
		if !strings.Contains(err.Error(), "limit: full (1 of 1 in flight)") {
			t.Errorf("got %q", err)
		}
		q.answer <- ""
		done(t, "call", c)
		wantStats(t, l, limit.Stats{Limit: 1, Admitted: 1, Rejected: 1, Cancelled: 1})
	})

	run("S6 ten places serve a thousand calls of 100 ms in 10 s", func(t *testing.T) {
		l := limit.NewLimiter(10)
		svc := limit.NewConcurrency(belfry.Of(func(ctx context.Context, n int) (int, error) {
			if s := l.Stats(); s.InFlight > 10 {
				t.Errorf("%d in flight", s.InFlight)
			}
			return n, sleep(ctx, 100*time.Millisecond)
		}), l)
		begin := time.Now()
		var calls sync.WaitGroup
		for i := range 1000 {
			calls.Go(func() {
				if n, err := belfry.Do(t.Context(), svc, i); n != i || err != nil {
					t.Errorf("got %v, %v", n, err)
				}
			})
		}
		calls.Wait()
		if d := time.Since(begin); d != 10*time.Second {
			t.Errorf("took %v, want 10s", d)
		}
		wantStats(t, l, limit.Stats{Limit: 10, Admitted: 1000})
	})
}

// TestNoWait holds on to what is free and spoken for by nobody.
func TestNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, inner := newBackend()
		svc := limit.NewConcurrency(inner, limit.NewLimiter(1))
		now := belfry.NoWait(t.Context())
		permit, err := svc.Acquire(now)
		if err != nil {
			t.Fatal(err)
		}
		waiter := acquire(t.Context(), svc)
		synctest.Wait()
		svc.Release(permit) // handed to the waiter, who may not have noticed yet
		if _, err := svc.Acquire(now); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("barged in before a waiter: %v", err)
		}
		svc.Release(done(t, "waiter", waiter).permit)
		permit, err = svc.Acquire(now)
		if err != nil {
			t.Fatal(err)
		}
		svc.Release(permit)
	})
}

// A lateContext runs f when it is asked for its error, which is between the first look for a place and the line.
type lateContext struct {
	context.Context
	f func()
}

func (c lateContext) Err() error {
	c.f()
	return c.Context.Err()
}

// TestFreedBeforeTheLine does not wait for a place that got free just before it would have waited.
func TestFreedBeforeTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, inner := newBackend()
		svc := limit.NewConcurrency(inner, limit.NewLimiter(1))
		permit, _ := svc.Acquire(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		permit, err := svc.Acquire(lateContext{ctx, sync.OnceFunc(func() { svc.Release(permit) })})
		if err != nil {
			t.Fatal(err)
		}
		svc.Release(permit)
	})
}

func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, inner := newBackend()
		l := limit.NewLimiter(1)
		svc := limit.NewConcurrency(inner, l)
		var calls []<-chan result
		for range 4 {
			calls = append(calls, call(t.Context(), svc, ""))
			synctest.Wait()
		}
		wantStats(t, l, limit.Stats{Limit: 1, InFlight: 1, Waiting: 3, Admitted: 1})
		if err := l.Resize(3); err != nil {
			t.Error(err)
		}
		wantStats(t, l, limit.Stats{Limit: 3, InFlight: 3, Waiting: 1, Admitted: 3})
		running := []*request{b.next(t), b.next(t), b.next(t)}
		if err := l.Resize(1); err != nil {
			t.Error(err)
		}
		for i, left := range []limit.Stats{
			{Limit: 1, InFlight: 2, Waiting: 1, Admitted: 3},
			{Limit: 1, InFlight: 1, Waiting: 1, Admitted: 3},
			{Limit: 1, InFlight: 1, Admitted: 4},
		} {
			running[i].answer <- ""
			wantStats(t, l, left)
		}
		err := l.Resize(-1)
		if err == nil || !strings.Contains(err.Error(), "at least 0, got -1") {
			t.Errorf("got %v", err)
		}
		if err := l.Resize(0); err != nil {
			t.Error(err)
		}
		if _, err := belfry.TryDo(t.Context(), svc, ""); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
		b.next(t).answer <- ""
		wantStats(t, l, limit.Stats{Admitted: 4, Rejected: 1})
		for _, c := range calls {
			done(t, "call", c)
		}
	})
}

func TestConstructorsRefuse(t *testing.T) {
	for _, c := range []struct {
		want string
		f    func()
	}{
		{"limit: concurrency must be at least 0, got -3", func() { limit.NewLimiter(-3) }},
		{"limit: limiter must not be nil", func() { limit.NewConcurrency(belfry.Of(open), nil) }},
		{"limit: limiter must not be nil", func() { limit.ConcurrencyLayer[int, int](nil) }},
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || err.Error() != c.want {
					t.Errorf("got %v, want %q", err, c.want)
				}
			}()
			c.f()
		}()
	}
	if err := limit.ValidateConcurrency(0); err != nil {
		t.Error(err)
	}
}

// TestUnusualEnds gives back a place whatever ends an Acquire or a Call.
func TestUnusualEnds(t *testing.T) {
	boom := func() { panic("boom") }
	for _, c := range []struct {
		name string
		svc  func(*limit.Limiter) belfry.Service[string, *stream]
		ok   bool // Do returns, without an error
	}{
		{"Acquire fails", over(faulty{acquire: func() error { return errBoom }}), false},
		{"Acquire panics", over(faulty{acquire: func() error { boom(); return nil }}), false},
		{"Acquire ends the goroutine", over(faulty{acquire: func() error { runtime.Goexit(); return nil }}), false},
		{"Call fails", over(faulty{call: func() error { return errBoom }}), false},
		{"Call panics", over(faulty{call: func() error { boom(); return nil }}), false},
		{"Call ends the goroutine", over(faulty{call: func() error { runtime.Goexit(); return nil }}), false},
		{"Call fails, of a stream", over(faulty{call: func() error { return errBoom }}, streams), false},
		{"Call panics, of a stream", over(faulty{call: func() error { boom(); return nil }}, streams), false},
		{"Call ends the goroutine, of a stream", over(faulty{call: func() error { runtime.Goexit(); return nil }}, streams), false},
		{"Until panics", over(faulty{}, belfry.Semantics[string, *stream]{
			Until: func(*stream, func()) *stream { boom(); return nil },
		}), false},
		{"the stream ends within Until", over(faulty{}, belfry.Semantics[string, *stream]{
			Until: func(s *stream, done func()) *stream { done(); return s },
		}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := limit.NewLimiter(1)
			svc := c.svc(l)
			for range 2 {
				var ok bool
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { _ = recover() }()
					_, err := belfry.Do(t.Context(), svc, "")
					ok = err == nil
				}()
				<-ended
				if ok != c.ok {
					t.Errorf("answered: %v, want %v", ok, c.ok)
				}
				if s := l.Stats(); s.InFlight+s.Reserved != 0 || s.Rejected != 0 {
					t.Errorf("left behind: %+v", s)
				}
			}
		})
	}

	t.Run("Release panics", func(t *testing.T) {
		l := limit.NewLimiter(1)
		svc := over(faulty{release: func() {
			if s := l.Stats(); s.Reserved != 1 {
				t.Errorf("the place was free before the inner permit: %+v", s)
			}
			boom()
		}})(l)
		permit, _ := svc.Acquire(t.Context())
		func() {
			defer func() { _ = recover() }()
			svc.Release(permit)
		}()
		if s := l.Stats(); s.Reserved != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// TestPermitPassesThrough makes sure that the inner service gets its own permit back.
func TestPermitPassesThrough(t *testing.T) {
	mine := belfry.NewPermit(new(int))
	svc := limit.NewConcurrency(faulty{permit: mine, check: func(p belfry.Permit) {
		if p != mine {
			t.Errorf("got another permit: %v", p)
		}
	}}, limit.NewLimiter(1))
	for range 2 {
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		svc.Release(permit)
		if _, err := belfry.Do(t.Context(), svc, ""); err != nil {
			t.Error(err)
		}
	}
}
