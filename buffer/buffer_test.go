package buffer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/buffer"
)

func TestBuffer(t *testing.T) {
	bubble(t, "BF1 a request goes in and its answer comes out", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 10, buffer.Config{})
		b.Allow(1)
		c := call(t.Context(), svc, "hello")
		b.Expect("hello").Answer("world")
		answered(t, c, "world")
		wantStats(t, svc, buffer.Stats{Bound: 10, Admitted: 1})
	})

	bubble(t, "BF2 S19 a cancelled call leaves at once and is never sent", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 10, buffer.Config{})
		b.Allow(1)
		one := call(t.Context(), svc, "hello")
		first := b.Expect("hello")
		ctx, cancel := context.WithCancel(t.Context())
		two := call(ctx, svc, "hello2")
		three := call(t.Context(), svc, "hello3")
		b.ExpectNone()
		cancel()
		refused(t, done(t, "the cancelled call", two).err, "context done while waiting", context.Canceled)
		first.Answer("world")
		answered(t, one, "world")
		b.Allow(1)
		b.Expect("hello3").Answer("world3")
		answered(t, three, "world3")
		wantStats(t, svc, buffer.Stats{Bound: 10, Admitted: 2, Cancelled: 1})
	})

	bubble(t, "BF3 a seat can be had while the inner service is not ready", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		r, err := belfry.Reserve(belfry.NoWait(t.Context()), svc)
		if err != nil {
			t.Fatal(err)
		}
		c := make(chan result, 1)
		go func() {
			res, err := r.Call(t.Context(), "hello")
			c <- result{res, err}
		}()
		pending(t, "call", c)
		b.ExpectNone()
		b.Allow(1)
		b.Expect("hello").Answer("world")
		answered(t, c, "world")
	})

	for _, waiting := range []bool{false, true} {
		name := "BF4 D23 X3 an inner Acquire that fails at once fails its own call alone"
		if waiting {
			name = "BF4 D23 X3 an inner Acquire that fails after a wait fails its own call alone"
		}
		bubble(t, name, func(t *testing.T) {
			b, inner := belfrytest.NewBackend[string, string](t)
			svc := buffer.New(inner, 2, buffer.Config{})
			foobar := errors.New("foobar")
			var one, two <-chan result
			if waiting {
				one, two = call(t.Context(), svc, "one"), call(t.Context(), svc, "two")
				b.FailAcquire(foobar)
			} else {
				b.FailAcquire(foobar)
				one, two = call(t.Context(), svc, "one"), call(t.Context(), svc, "two")
			}
			r := done(t, "the call", one)
			if rejection, ok := errors.AsType[*belfry.Rejection](r.err); !ok || rejection.Layer != "buffer" || !errors.Is(r.err, foobar) {
				t.Errorf("got %v", r.err)
			}
			wantStats(t, svc, buffer.Stats{Bound: 2, Seated: 1, Queued: 1, Failed: 1})
			b.Allow(1)
			b.Expect("two").Answer("2")
			answered(t, two, "2")
		})
	}

	bubble(t, "BF5 after Close there is no seat", func(t *testing.T) {
		_, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		for range 2 {
			if err := svc.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, ctx := range []context.Context{t.Context(), belfry.NoWait(t.Context())} {
			_, err := svc.Acquire(ctx)
			refused(t, err, "closed", belfry.ErrClosed)
		}
		wantStats(t, svc, buffer.Stats{Bound: 1, Rejected: 2, Closed: true})
	})

	bubble(t, "BF6 Close ends a queued call", func(t *testing.T) {
		_, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		c := call(t.Context(), svc, "hello")
		pending(t, "call", c)
		_ = svc.Close()
		err := done(t, "call", c).err
		refused(t, err, "closed", belfry.ErrClosed)
		if errors.Is(err, context.Canceled) {
			t.Errorf("%v: the caller has cancelled nothing", err)
		}
		wantStats(t, svc, buffer.Stats{Bound: 1, Rejected: 1, Closed: true})
	})

	bubble(t, "BF7 who finds the room full waits for a seat, and all are served in order", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 2, buffer.Config{})
		b.Allow(1)
		one := call(t.Context(), svc, "1")
		running := b.Expect("1")
		two, three := call(t.Context(), svc, "2"), call(t.Context(), svc, "3")
		four := call(t.Context(), svc, "4")
		wantStats(t, svc, buffer.Stats{Bound: 2, Seated: 2, Queued: 2, Waiting: 1, Admitted: 1})
		running.Answer("a")
		answered(t, one, "a")
		b.Allow(1) // room for one more, as in a service that does one thing at a time
		running = b.Expect("2")
		wantStats(t, svc, buffer.Stats{Bound: 2, Seated: 2, Queued: 2, Admitted: 2})
		running.Answer("b")
		answered(t, two, "b")
		b.Allow(1)
		b.Expect("3").Answer("c")
		answered(t, three, "c")
		b.Allow(1)
		b.Expect("4").Answer("d")
		answered(t, four, "d")
		wantStats(t, svc, buffer.Stats{Bound: 2, Admitted: 4})
	})

	bubble(t, "BF8 S19 Close answers those in the room and those who wait for a seat", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 2, buffer.Config{})
		b.Allow(1)
		running := call(t.Context(), svc, "running")
		request := b.Expect("running")
		all := []<-chan result{call(t.Context(), svc, "1"), call(t.Context(), svc, "2")}
		seats := []<-chan error{acquire(t.Context(), svc), acquire(t.Context(), svc)}
		wantStats(t, svc, buffer.Stats{Bound: 2, Seated: 2, Queued: 2, Waiting: 2, Admitted: 1})
		_ = svc.Close()
		for _, c := range all {
			refused(t, done(t, "a call", c).err, "closed", belfry.ErrClosed)
		}
		for _, c := range seats {
			refused(t, done(t, "an Acquire", c), "closed", belfry.ErrClosed)
		}
		pending(t, "the call in flight", running)
		request.Answer("to its end")
		answered(t, running, "to its end")
		wantStats(t, svc, buffer.Stats{Bound: 2, Admitted: 1, Rejected: 4, Closed: true})
	})

	bubble(t, "BF9 one readiness error fails one call, and waiters get on", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 2, buffer.Config{})
		foobar := errors.New("foobar")
		one, two := call(t.Context(), svc, "1"), call(t.Context(), svc, "2")
		first, second := acquire(t.Context(), svc), acquire(t.Context(), svc)
		b.FailAcquire(foobar)
		if r := done(t, "1", one); !errors.Is(r.err, foobar) || !errors.Is(r.err, belfry.ErrRejected) {
			t.Errorf("got %v", r.err)
		}
		pending(t, "2", two)
		if err := done(t, "the first waiter", first); err != nil {
			t.Error(err)
		}
		pending(t, "the second waiter", second)
		b.Allow(1)
		b.Expect("2").Answer("b")
		answered(t, two, "b")
		if err := done(t, "the second waiter", second); err != nil {
			t.Error(err)
		}
	})

	for _, waiting := range []bool{false, true} {
		name := "BF9 ErrClosed from inside, found at once, is for ever"
		if waiting {
			name = "BF9 ErrClosed from inside ends all, waiters included"
		}
		bubble(t, name, func(t *testing.T) {
			b, inner := belfrytest.NewBackend[string, string](t)
			svc := buffer.New(inner, 2, buffer.Config{})
			var calls []<-chan result
			var seats []<-chan error
			if waiting {
				calls = append(calls, call(t.Context(), svc, "1"), call(t.Context(), svc, "2"))
				seats = append(seats, acquire(t.Context(), svc), acquire(t.Context(), svc))
			}
			b.Close()
			if !waiting {
				calls = append(calls, call(t.Context(), svc, "1"))
			}
			if err := done(t, "who was told", calls[0]).err; !errors.Is(err, belfry.ErrClosed) {
				t.Errorf("got %v", err)
			}
			for _, c := range calls[1:] {
				refused(t, done(t, "a call", c).err, "inner service closed", belfry.ErrClosed)
			}
			for _, c := range append(seats, acquire(t.Context(), svc)) {
				refused(t, done(t, "an Acquire", c), "inner service closed", belfry.ErrClosed)
			}
			if s := svc.Stats(); s.Seated != 0 || s.Queued != 0 || s.Waiting != 0 || !s.Closed || s.Failed != 1 {
				t.Errorf("left behind: %+v", s)
			}
		})
	}

	bubble(t, "BF10 the values of the caller's context reach the inner service", func(t *testing.T) {
		type key struct{}
		for _, cfg := range []buffer.Config{{}, {MaxWait: time.Hour}, {Order: buffer.LIFO}, {Order: buffer.CoDel}} {
			var waited, called []any
			var busy bool
			svc := buffer.New(service(faulty{
				acquire: func(ctx context.Context) error {
					if ctx.Err() != nil && busy {
						return &belfry.Rejection{Layer: "inner", Err: ctx.Err()}
					}
					if ctx.Err() == nil {
						waited = append(waited, ctx.Value(key{}))
					}
					return nil
				},
				call: func(ctx context.Context) error { called = append(called, ctx.Value(key{})); return nil },
			}), 5, cfg)
			for i, b := range []bool{false, true} {
				busy = b
				if _, err := belfry.Do(context.WithValue(t.Context(), key{}, i), svc, ""); err != nil {
					t.Error(err)
				}
			}
			if len(waited) != 1 || waited[0] != 1 {
				t.Errorf("%+v: the Acquire that may wait saw %v, want [1]", cfg, waited)
			}
			if len(called) != 2 || called[0] != 0 || called[1] != 1 {
				t.Errorf("%+v: the Calls saw %v, want [0 1]", cfg, called)
			}
		}
	})

	bubble(t, "BF11 a seat that is given back, or left, lets the next in", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 2, buffer.Config{})
		one, err := belfry.Reserve(t.Context(), svc)
		if err != nil {
			t.Fatal(err)
		}
		two, err := belfry.Reserve(t.Context(), svc)
		if err != nil {
			t.Fatal(err)
		}
		_, err = svc.Acquire(belfry.NoWait(t.Context()))
		refused(t, err, "full", belfry.ErrNotReady)
		if r, _ := errors.AsType[*belfry.Rejection](err); r.InFlight != 2 || r.Limit != 2 {
			t.Errorf("got %+v", r)
		}
		three, four := acquire(t.Context(), svc), acquire(t.Context(), svc)
		pending(t, "third", three)
		wantStats(t, svc, buffer.Stats{Bound: 2, Seated: 2, Waiting: 2, Rejected: 1})
		one.Release()
		if err := done(t, "third", three); err != nil {
			t.Error(err)
		}
		pending(t, "fourth", four)
		b.Allow(1)
		c := make(chan result, 1)
		go func() {
			res, err := two.Call(t.Context(), "2")
			c <- result{res, err}
		}()
		request := b.Expect("2")
		if err := done(t, "fourth, beside the call", four); err != nil {
			t.Error(err)
		}
		request.Answer("b")
		answered(t, c, "b")
	})
}
