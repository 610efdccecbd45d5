package buffer_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
)

func TestPatience(t *testing.T) {
	bubble(t, "D29 MaxWait is each caller's own, whoever leaves or is served before", func(t *testing.T) {
		for _, order := range []buffer.Order{buffer.FIFO, buffer.LIFO} {
			q := newQueue(t, 4, buffer.Config{Order: order, MaxWait: 4 * time.Second})
			q.come("1")
			elapse(time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			two := call(ctx, q.svc, "2")
			elapse(time.Second)
			q.come("3", "4")
			seat := acquire(t.Context(), q.svc)
			q.serve("1")
			if err := done(t, "the seat", seat); err != nil {
				t.Error(err)
			}
			seat = acquire(t.Context(), q.svc)
			elapse(time.Second)
			cancel()
			refused(t, done(t, "2", two).err, "context done while waiting", context.Canceled)
			if err := done(t, "the seat", seat); err != nil {
				t.Error(err)
			}
			late := acquire(t.Context(), q.svc)
			elapse(3*time.Second - 1)
			pending(t, "who waits for a seat", late)
			q.expire()
			elapse(time.Nanosecond)
			q.expire("3", "4")
			if err := done(t, "the seat", late); err != nil {
				t.Error(err)
			}
		}
	})

	bubble(t, "D29 CoDel bounds the wait for the turn, not that for a seat", func(t *testing.T) {
		q := newQueue(t, 3, buffer.Config{Order: buffer.CoDel, Interval: time.Second, Target: time.Second})
		held, err := q.svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		q.come("1", "2")
		seats := []<-chan error{acquire(t.Context(), q.svc), acquire(t.Context(), q.svc)}
		seat := acquire(t.Context(), q.svc)
		elapse(time.Second)
		q.expire("1", "2")
		for _, c := range seats {
			if err := done(t, "a seat", c); err != nil {
				t.Error(err)
			}
		}
		elapse(time.Hour)
		pending(t, "who waits for a seat", seat)
		q.svc.Release(held)
		if err := done(t, "the seat", seat); err != nil {
			t.Error(err)
		}
	})

	bubble(t, "D29 CoDel's short patience ends before the long one of those ahead", func(t *testing.T) {
		for _, ahead := range [][]string{{"b"}, {"b", "c"}} { // the one that has the turn, and one in line
			q := newQueue(t, 10, buffer.Config{Order: buffer.CoDel}) // 5 ms and 100 ms
			ms := time.Millisecond
			q.come("a")
			elapse(60 * ms)
			q.come(ahead...)
			elapse(41 * ms) // 101
			q.expire("a")
			q.come("d", "e")
			n := len(ahead) + 2
			wantStats(t, q.svc, buffer.Stats{Bound: 10, Seated: n, Queued: n, Expired: 1})
			elapse(5*ms - 1)
			q.expire()
			elapse(time.Nanosecond) // 106
			q.expire("d", "e")
			elapse(54*ms - 1)
			q.expire()
			elapse(time.Nanosecond) // 160
			q.expire(ahead...)
		}
	})

	bubble(t, "S19 Close answers those whose patience is short, although the inner Acquire does not notice", func(t *testing.T) {
		unaware := make(chan struct{})
		svc := buffer.New(service(faulty{acquire: func(ctx context.Context) error {
			if ctx.Err() == nil {
				<-unaware
			}
			return &belfry.Rejection{Layer: "inner", Err: belfry.ErrNotReady}
		}}), 3, buffer.Config{Order: buffer.CoDel})
		inside := call(t.Context(), svc, "1")
		elapse(101 * time.Millisecond)
		short := call(t.Context(), svc, "2")
		_ = svc.Close()
		refused(t, done(t, "the call in line", short).err, "closed", belfry.ErrClosed)
		close(unaware)
		refused(t, done(t, "the call inside", inside).err, "closed", belfry.ErrClosed)
		wantStats(t, svc, buffer.Stats{Bound: 3, Rejected: 2, Closed: true})
	})

	bubble(t, "D29 the longest MaxWait there is is one without end", func(t *testing.T) {
		q := newQueue(t, 2, buffer.Config{MaxWait: math.MaxInt64})
		q.come("1", "2")
		seat := acquire(t.Context(), q.svc)
		elapse(time.Hour)
		pending(t, "who waits for a seat", seat)
		q.serve("1", "2")
	})
}

// TestPatienceElsewhere uses a room in one bubble after another, each with a clock and timers of its own.
func TestPatienceElsewhere(t *testing.T) {
	for _, cfg := range []buffer.Config{
		{MaxWait: time.Second},
		{Order: buffer.LIFO, MaxWait: time.Second},
		{Order: buffer.CoDel, Interval: time.Second},
		{Order: buffer.CoDel, MaxWait: time.Second, Interval: time.Minute},
	} {
		t.Run(cfg.Order.String(), func(t *testing.T) {
			ready := false
			svc := buffer.New(service(faulty{acquire: func(ctx context.Context) error {
				if ready {
					return nil
				}
				<-ctx.Done()
				return &belfry.Rejection{Layer: "inner", Err: ctx.Err()}
			}}), 3, cfg)
			for range 2 {
				synctest.Test(t, func(t *testing.T) {
					ready = false
					one, two, three := call(t.Context(), svc, "1"), call(t.Context(), svc, "2"), call(t.Context(), svc, "3")
					ctx, cancel := context.WithCancel(t.Context())
					seat := acquire(ctx, svc)
					elapse(time.Second - 1)
					for _, c := range []<-chan result{one, two, three} {
						pending(t, "a call", c)
					}
					pending(t, "who waits for a seat", seat)
					elapse(time.Nanosecond)
					for _, c := range []<-chan result{one, two, three} {
						refused(t, done(t, "a call", c).err, "queued too long", belfry.ErrNotReady)
					}
					cancel()
					if err := done(t, "who waits for a seat", seat); err == nil {
						svc.Release(belfry.Permit{})
					}
					ready = true
					answered(t, call(t.Context(), svc, "4"), "4")
					ready = false
					ctx, cancel = context.WithCancel(t.Context())
					one, two, three = call(ctx, svc, "1"), call(ctx, svc, "2"), call(ctx, svc, "3")
					waiting, leave := context.WithCancel(t.Context())
					seat = acquire(waiting, svc)
					leave() // all do, before anybody's patience ends
					refused(t, done(t, "who waits for a seat", seat), "context done while waiting", context.Canceled)
					cancel()
					for _, c := range []<-chan result{one, two, three} {
						refused(t, done(t, "a call", c).err, "context done while waiting", context.Canceled)
					}
				})
			}
		})
	}
}
