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

// A queue is what the tests of this file play with: calls in line, in the order in which they came.
type queue struct {
	t     *testing.T
	b     *belfrytest.Backend[string, string]
	svc   room
	calls map[string]<-chan result
}

func newQueue(t *testing.T, bound int, cfg buffer.Config) *queue {
	b, inner := belfrytest.NewBackend[string, string](t)
	return &queue{t, b, buffer.New(inner, bound, cfg), map[string]<-chan result{}}
}

func (q *queue) come(reqs ...string) {
	for _, req := range reqs {
		q.calls[req] = call(q.t.Context(), q.svc, req)
	}
}

// serve lets one call through at a time, and fails unless they are these.
func (q *queue) serve(reqs ...string) {
	q.t.Helper()
	for _, req := range reqs {
		q.b.Allow(1)
		q.b.Expect(req).Answer(req)
		answered(q.t, q.calls[req], req)
	}
}

// expire fails unless these calls, and no others, have waited for too long by now.
func (q *queue) expire(reqs ...string) {
	q.t.Helper()
	for _, req := range reqs {
		err := done(q.t, req, q.calls[req]).err
		refused(q.t, err, "queued too long", belfry.ErrNotReady)
		if errors.Is(err, context.DeadlineExceeded) {
			q.t.Errorf("%v: it was not the caller's deadline", err)
		}
		delete(q.calls, req)
	}
	for req, c := range q.calls {
		select {
		case r := <-c:
			q.t.Errorf("%s ended with %v", req, r)
		default:
		}
	}
}

func TestOrder(t *testing.T) {
	bubble(t, "D27 FIFO serves the oldest first", func(t *testing.T) {
		q := newQueue(t, 10, buffer.Config{})
		q.come("1", "2", "3")
		q.serve("1")
		q.come("4")
		q.serve("2", "3", "4")
	})

	bubble(t, "D29 LIFO serves the newest first, behind the one that is inside", func(t *testing.T) {
		q := newQueue(t, 10, buffer.Config{Order: buffer.LIFO})
		q.come("1", "2", "3")
		q.serve("1") // has come first, and been inside since
		q.come("4")  // 3 is inside
		q.serve("3", "4")
		q.come("5")
		q.serve("2", "5")
	})

	bubble(t, "D29 LIFO waiters for a seat come first, first served", func(t *testing.T) {
		q := newQueue(t, 1, buffer.Config{Order: buffer.LIFO})
		q.come("1", "2", "3")
		q.serve("1", "2", "3")
	})

	bubble(t, "D29 no call waits in the room for longer than MaxWait", func(t *testing.T) {
		for _, order := range []buffer.Order{buffer.FIFO, buffer.LIFO} {
			q := newQueue(t, 10, buffer.Config{Order: order, MaxWait: time.Second})
			q.come("1")
			elapse(400 * time.Millisecond)
			q.come("2", "3")
			elapse(600*time.Millisecond - 1)
			q.expire()
			elapse(time.Nanosecond)
			q.expire("1") // inside
			q.come("4")
			elapse(400 * time.Millisecond)
			q.expire("2", "3") // inside, and in line
			q.serve("4")
			wantStats(t, q.svc, buffer.Stats{Bound: 10, Admitted: 1, Expired: 3})
		}
	})

	bubble(t, "D29 nobody waits for a seat for longer than MaxWait", func(t *testing.T) {
		q := newQueue(t, 1, buffer.Config{MaxWait: time.Second})
		permit, err := q.svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := acquire(t.Context(), q.svc)
		elapse(time.Second - 1)
		pending(t, "Acquire", c)
		elapse(time.Nanosecond)
		refused(t, done(t, "Acquire", c), "queued too long", belfry.ErrNotReady)
		wantStats(t, q.svc, buffer.Stats{Bound: 1, Seated: 1, Expired: 1})
		c = acquire(t.Context(), q.svc)
		q.svc.Release(permit)
		if err := done(t, "Acquire", c); err != nil {
			t.Error(err)
		}
	})

	bubble(t, "D29 a deadline of the caller's own that is sooner keeps its error", func(t *testing.T) {
		q := newQueue(t, 2, buffer.Config{MaxWait: time.Second})
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			return ctx
		}
		one, two := call(within(2), q.svc, "1"), call(within(2), q.svc, "2")
		seat := acquire(within(1), q.svc)
		elapse(time.Nanosecond)
		refused(t, done(t, "for a seat", seat), "context done while waiting", context.DeadlineExceeded)
		elapse(time.Nanosecond)
		refused(t, done(t, "inside", one).err, "context done while waiting", context.DeadlineExceeded)
		refused(t, done(t, "in line", two).err, "context done while waiting", context.DeadlineExceeded)
		wantStats(t, q.svc, buffer.Stats{Bound: 2, Cancelled: 3})
	})

	bubble(t, "D29 CoDel lets a burst wait for Interval, and a queue that stands for Target", func(t *testing.T) {
		q := newQueue(t, 10, buffer.Config{Order: buffer.CoDel}) // 5 ms and 100 ms
		ms := time.Millisecond
		q.come("a")
		elapse(50 * ms)
		q.come("b")
		elapse(50*ms - 1)
		q.come("c")
		q.expire()
		elapse(time.Nanosecond) // 100 ms
		q.expire("a")
		elapse(2 * ms) // 102
		q.come("d", "e")
		elapse(1 * ms) // 103
		q.serve("b")   // has been inside since a left, when the line had not yet stood for too long
		q.serve("e")   // the newest, now
		q.expire()
		elapse(4 * ms) // 107
		q.expire("d")
		q.serve("c") // the last of the burst
		q.come("f")  // the line was empty
		elapse(100*ms - 1)
		q.expire()
		elapse(time.Nanosecond)
		q.expire("f")
		wantStats(t, q.svc, buffer.Stats{Bound: 10, Admitted: 3, Expired: 3})
	})

	bubble(t, "D29 CoDel serves a burst in order", func(t *testing.T) {
		q := newQueue(t, 10, buffer.Config{Order: buffer.CoDel})
		q.come("a", "b", "c")
		elapse(100 * time.Millisecond / 2)
		q.serve("a", "b", "c")
	})

	bubble(t, "D29 CoDel waits no longer than MaxWait either", func(t *testing.T) {
		q := newQueue(t, 10, buffer.Config{Order: buffer.CoDel, MaxWait: 30 * time.Millisecond})
		q.come("a")
		elapse(30 * time.Millisecond)
		q.expire("a")
		q = newQueue(t, 10, buffer.Config{Order: buffer.CoDel, MaxWait: time.Hour})
		q.come("a")
		elapse(100 * time.Millisecond)
		q.expire("a")
	})
}
