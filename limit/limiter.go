package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/places"
	"github.com/belfry-go/belfry/internal/queue"
)

// ValidateConcurrency says whether n can be the size of a Limiter: it must not be negative.
func ValidateConcurrency(n int) error {
	if n < 0 {
		return fmt.Errorf("limit: concurrency must be at least 0, got %d", n)
	}
	return nil
}

// Config says who is told what a [Limiter] decides. The zero Config tells nobody, at no cost.
//
// Hooks are called by the caller's goroutine, so by several at once, and without a lock: they may ask for Stats and Resize
// the Limiter. The caller waits for them, with the place that it has, so they must not wait for long, least of all for a
// place. A panic in one passes to the caller, and leaves nothing reserved.
type Config struct {
	// OnAdmit is told when a caller has got a place, before the inner service is acquired, with how long that took: 0 if
	// there was one. Nil means nobody.
	OnAdmit func(waited time.Duration)
	// OnReject is told of each caller that gets no place, with the error that it gets, which holds a [belfry.Rejection]. Who asks
	// under [belfry.NoWait] may ask again: a buffer does so for each call that then queues. Nil means nobody.
	OnReject func(err error)
}

// A Limiter is a number of places for calls. It may be shared by services of different types, and its size changed while
// they run. It is safe for concurrent use; its zero value has no places.
type Limiter struct {
	cfg     Config        // beside what who reads it has just written
	places  places.Count  // closed exactly while somebody waits, whenever mu is free
	started atomic.Uint64 // calls that have begun

	mu                  sync.Mutex // guards what follows, and is the mutex of places
	limit               int
	waiting             queue.Queue[struct{}]
	rejected, cancelled uint64
}

// NewLimiter returns a Limiter with n places, and at most one Config. No place means that nobody is admitted, until a
// Resize. More than 536,870,911 are as good as so many. It panics with the error of [ValidateConcurrency] if there is one.
func NewLimiter(n int, cfg ...Config) *Limiter {
	if err := ValidateConcurrency(n); err != nil {
		panic(err)
	}
	l := &Limiter{limit: n}
	l.places.Grow(min(n, places.Most))
	if len(cfg) > 0 {
		l.cfg = cfg[0]
	}
	return l
}

// Resize changes the number of places to n, or fails with the error of [ValidateConcurrency]. More places go to waiters at
// once. If there are fewer, no call is interrupted: those above n are not replaced when they end.
func (l *Limiter) Resize(n int) error {
	if err := ValidateConcurrency(n); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places.Grow(min(n, places.Most) - min(l.limit, places.Most))
	l.limit = n
	l.settle()
	return nil
}

// Stats is what a Limiter has counted, at one moment.
type Stats struct {
	// Limit is the number of places. InFlight and Reserved together are above it for a while after it was reduced.
	Limit int
	// InFlight is the number of calls that have begun and are not over.
	InFlight int
	// Reserved is the number of places held without a call: by permits, and by callers who wait for the inner service.
	Reserved int
	// Waiting is the number of callers in line for a place.
	Waiting int
	// Admitted counts the calls that have begun.
	Admitted uint64
	// Rejected counts those who found no free place and could not wait for one.
	Rejected uint64
	// Cancelled counts those who left the line because their context ended.
	Cancelled uint64
}

// Stats returns what the Limiter has counted.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	free, inFlight, admitted := l.places.Look(&l.started)
	return Stats{
		Limit:     l.limit,
		InFlight:  inFlight,
		Reserved:  min(l.limit, places.Most) - free - inFlight,
		Waiting:   l.waiting.Len(),
		Admitted:  admitted,
		Rejected:  l.rejected,
		Cancelled: l.cancelled,
	}
}

// acquire takes a place, waiting for it as long as ctx allows, and says how long that was, if somebody wants to know. Its
// error is a Rejection.
func (l *Limiter) acquire(ctx context.Context) (waited time.Duration, err error) {
	if l.places.Take() {
		return 0, nil
	}
	ended := ctx.Err() // not under the lock
	w, err := l.join(ended)
	if w == nil {
		return 0, err
	}
	var since time.Time
	if l.cfg.OnAdmit != nil {
		since = time.Now()
	}
	select {
	case <-w.Handed():
	case <-ctx.Done():
		err = l.leave(w, ctx.Err())
	}
	if err == nil && l.cfg.OnAdmit != nil {
		waited = time.Since(since)
	}
	return waited, err
}

// admitted tells that a caller has a place, which the caller of admitted gives back if that panics.
func (l *Limiter) admitted(waited time.Duration) {
	if l.cfg.OnAdmit != nil {
		l.cfg.OnAdmit(waited)
	}
}

// refused tells that a caller has none.
func (l *Limiter) refused(err error) {
	if l.cfg.OnReject != nil {
		l.cfg.OnReject(err)
	}
}

// join takes a place if one is free by now, else gets in line, unless the context has ended. Without a waiter its error
// is the answer.
func (l *Limiter) join(ended error) (*queue.Waiter[struct{}], error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	alone := l.waiting.Len() == 0
	switch {
	case ended != nil && alone && l.places.Claim(), ended == nil && alone && l.places.ClaimOrClose():
		return nil, nil
	case ended != nil:
		l.rejected++
		return nil, l.refusal("full", ended)
	}
	return l.waiting.Join(struct{}{}), nil
}

// leave gives up waiting for the reason ended, unless w was handed a place at the same moment: then w has it.
func (l *Limiter) leave(w *queue.Waiter[struct{}], ended error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.waiting.Leave(w) {
		return nil
	}
	l.settle()
	l.cancelled++
	return l.refusal("context done while waiting", ended)
}

// refusal counts reserved places as in flight: they are why there was none left. mu is held.
func (l *Limiter) refusal(reason string, ended error) error {
	taken := min(l.limit, places.Most) - min(l.places.Free(), 0)
	return &belfry.Rejection{Layer: "limit", Reason: reason, InFlight: taken, Limit: l.limit, Err: ended}
}

// begin turns a reserved place into a call in flight.
func (l *Limiter) begin() { l.started.Add(1) }

// inFlight returns how many calls have begun and are not over.
func (l *Limiter) inFlight() int {
	_, inFlight, _ := l.places.Look(&l.started)
	return inFlight
}

// end gives back the place of a call that is over.
func (l *Limiter) end() {
	if l.places.End() {
		l.handOn()
	}
}

// release gives back a place that no call was made on.
func (l *Limiter) release() {
	if l.places.Give() {
		l.handOn()
	}
}

func (l *Limiter) handOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
}

// settle hands what is free to those who wait, the oldest first. mu is held.
func (l *Limiter) settle() {
	for l.waiting.Len() > 0 && l.places.Claim() {
		l.waiting.HandOldest(struct{}{})
	}
	if l.waiting.Len() == 0 {
		l.places.Open()
	}
}

var errNoLimiter = errors.New("limit: limiter must not be nil")
