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

func TestConcurrency(t *testing.T) {
	bubble(t, "C1 a call that has returned lets the next in", func(t *testing.T) {
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

	bubble(t, "C2 an answered response whose stream is unread still holds its place", func(t *testing.T) {
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

	bubble(t, "C3 no places admit nobody", func(t *testing.T) {
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

	bubble(t, "C4 D18 a reservation counts, and can be given back", func(t *testing.T) {
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

	bubble(t, "C5 D18 Release lets the next in", func(t *testing.T) {
		_, inner := newBackend()
		svc := limit.NewConcurrency(inner, limit.NewLimiter(1))
		permit, _ := svc.Acquire(t.Context())
		waiter := acquire(t.Context(), svc)
		pending(t, "waiter", waiter)
		svc.Release(permit)
		svc.Release(done(t, "waiter", waiter).permit)
	})

	bubble(t, "C6 a failed call lets the next in", func(t *testing.T) {
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

	bubble(t, "C7 a cancelled call holds its place until it has returned", func(t *testing.T) {
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

	bubble(t, "C8 only the next waiter is woken", func(t *testing.T) {
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

	bubble(t, "D22 a response that is kept holds no place", func(t *testing.T) {
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

	bubble(t, "D51 a bounded wait ends with an error that says why", func(t *testing.T) {
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

	bubble(t, "S6 ten places serve a thousand calls of 100 ms in 10 s", func(t *testing.T) {
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
