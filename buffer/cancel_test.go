package buffer_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/buffer"
)

func TestCancel(t *testing.T) {
	for i, name := range []string{"whose turn it is", "in the middle of the line", "at the end of the line"} {
		bubble(t, "D26 X1 the seat is free at once of a call that is cancelled "+name, func(t *testing.T) {
			b, inner := belfrytest.NewBackend[string, string](t)
			svc := buffer.New(inner, 3, buffer.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			var calls []<-chan result
			for j, req := range []string{"0", "1", "2"} {
				if j == i {
					calls = append(calls, call(ctx, svc, req))
				} else {
					calls = append(calls, call(t.Context(), svc, req))
				}
			}
			seat := acquire(t.Context(), svc)
			pending(t, "who waits for a seat", seat)
			cancel()
			refused(t, done(t, "the cancelled call", calls[i]).err, "context done while waiting", context.Canceled)
			if err := done(t, "who waits for a seat", seat); err != nil {
				t.Error(err)
			}
			wantStats(t, svc, buffer.Stats{Bound: 3, Seated: 3, Queued: 2, Cancelled: 1})
			for j, c := range calls {
				if req := []string{"0", "1", "2"}[j]; j != i {
					b.Allow(1)
					b.Expect(req).Answer(req)
					answered(t, c, req)
				}
			}
		})
	}

	bubble(t, "D26 X1 with all in the room cancelled, newcomers are served", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 2, buffer.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		calls := []<-chan result{call(ctx, svc, "1"), call(ctx, svc, "2"), call(ctx, svc, "3")}
		elapse(time.Second)
		for _, c := range calls {
			refused(t, done(t, "a call", c).err, "context done while waiting", context.DeadlineExceeded)
		}
		wantStats(t, svc, buffer.Stats{Bound: 2, Cancelled: 3})
		c := call(t.Context(), svc, "4")
		b.Allow(1)
		b.Expect("4").Answer("d")
		answered(t, c, "d")
	})

	bubble(t, "a cancelled wait for a seat holds up nobody", func(t *testing.T) {
		_, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		one, two := acquire(ctx, svc), acquire(t.Context(), svc)
		cancel()
		refused(t, done(t, "one", one), "context done while waiting", context.Canceled)
		pending(t, "two", two)
		svc.Release(permit)
		if err := done(t, "two", two); err != nil {
			t.Error(err)
		}
		wantStats(t, svc, buffer.Stats{Bound: 1, Seated: 1, Cancelled: 1})
	})

	bubble(t, "a seat that gets free just before its waiter waits is not missed", func(t *testing.T) {
		_, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx := &errHook{Context: t.Context(), hook: func() { svc.Release(permit) }}
		if err := done(t, "Acquire", acquire(ctx, svc)); err != nil {
			t.Error(err)
		}
		wantStats(t, svc, buffer.Stats{Bound: 1, Seated: 1})
	})

	bubble(t, "a call under a context that is done is not sent", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		b.Allow(1)
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = svc.Call(ctx, permit, "hello")
		refused(t, err, "context done while waiting", context.Canceled)
		if b.Free() != 1 {
			t.Errorf("%d left of 1", b.Free())
		}
		wantStats(t, svc, buffer.Stats{Bound: 1, Cancelled: 1})
	})

	bubble(t, "S19 a permit that comes for a caller who has left is given back", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		back := 0
		svc := buffer.New(service(faulty{
			acquire: func(ctx context.Context) error {
				if ctx.Err() != nil {
					return &belfry.Rejection{Layer: "inner", Err: ctx.Err()}
				}
				cancel()
				return nil
			},
			call:    func(context.Context) error { t.Error("sent"); return nil },
			release: func() { back++ },
		}), 1, buffer.Config{})
		_, err := belfry.Do(ctx, svc, "hello")
		refused(t, err, "context done while waiting", context.Canceled)
		if back != 1 {
			t.Errorf("given back %d times", back)
		}
		wantStats(t, svc, buffer.Stats{Bound: 1, Cancelled: 1})
	})
}
