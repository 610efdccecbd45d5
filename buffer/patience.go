package buffer

import (
	"math"
	"time"

	"github.com/belfry-go/belfry/internal/queue"
)

// A ticket is what a waiter holds: while it waits, the time by clock when its patience ends; then what it was handed. So a waiter is 8 bytes larger for
// its patience, and needs no timer and no context of its own.
type ticket time.Duration

const (
	granted ticket = math.MinInt64 + iota // the seat, or the turn
	late                                  // nothing, because its patience has ended
	refused                               // nothing, because the room is closed
	endless ticket = math.MaxInt64        // is the patience
)

// until returns when somebody's patience ends who has so much of it at now.
func until(now, patience time.Duration) ticket {
	if patience == 0 || now+patience < now {
		return endless
	}
	return ticket(now + patience)
}

// left returns how much is left at now of the patience that ends at t.
func (t ticket) left(now time.Duration) time.Duration { return time.Duration(t) - now }

// now is the time by clock if anybody's patience ends, for it costs something to know.
func (r *room) now() time.Duration {
	if r.maxWait == 0 && r.order != CoDel {
		return 0
	}
	return clock()
}

// clock is the time where only differences matter. It is below 0 in a bubble of testing/synctest.
func clock() time.Duration { return time.Since(began) }

var began = time.Now()

// join adds a waiter to q whose patience ends at t, and sees to the timer. mu is held.
func (r *room) join(q *queue.Queue[ticket], t ticket, now time.Duration) *queue.Waiter[ticket] {
	switch {
	case t == endless:
	case r.timer == nil:
		r.rings, r.timer = t, time.AfterFunc(t.left(now), r.expire)
	case t < r.rings:
		r.rings = t
		r.timer.Reset(t.left(now))
	}
	return q.Join(t)
}

// expire is what the timer does: it turns away those whose patience has ended.
func (r *room) expire() {
	now := clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for range turnAwayLate(&r.seats, now) {
		r.counted[expired].Add(1)
	}
	turnAwayLate(&r.line, now)
	turnAwayLate(&r.hurried, now)
	r.settle() // which stops the timer if nobody is left
	if r.timer != nil {
		r.rings = r.soonest()
		r.timer.Reset(r.rings.left(now))
	}
}

// turnAwayLate tells those in q whose patience has ended, and returns how many they are.
func turnAwayLate(q *queue.Queue[ticket], now time.Duration) (n int) {
	for t, ok := q.Oldest(); ok && t <= ticket(now); t, ok = q.Oldest() {
		q.HandOldest(late)
		n++
	}
	return n
}

// rest stops the timer if there is nobody whose patience ends. mu is held.
func (r *room) rest() {
	if r.timer != nil && r.soonest() == endless {
		r.timer.Stop()
		r.timer = nil
	}
}

// soonest returns when the first patience ends of those who wait. mu is held.
func (r *room) soonest() ticket {
	soonest := endless
	for _, q := range [...]*queue.Queue[ticket]{&r.seats, &r.line, &r.hurried} {
		if t, ok := q.Oldest(); ok {
			soonest = min(soonest, t)
		}
	}
	return soonest
}
