package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/gcra"
	"github.com/belfry-go/belfry/internal/queue"
)

// A RateConfig says what a rate does not say by itself. Hooks are called as those of [Config] are.
type RateConfig struct {
	// Burst is how many calls may go at once after a quiet time, 1 to 1000000. 0 means as many as the rate lets go in
	// one period.
	Burst int
	// OnAdmit is told when a caller has got its token, before the inner service is acquired, with how long that took: 0 if
	// there was one. Nil means nobody.
	OnAdmit func(waited time.Duration)
	// OnReject is told of each caller that gets no token, with the error that it gets, which holds a [belfry.Rejection]. Nil
	// means nobody.
	OnReject func(err error)
}

const (
	maxBurst = 1_000_000
	maxCalls = 1_000_000_000
	maxPer   = 24 * time.Hour
	maxFill  = 365 * 24 * time.Hour
)

// ValidateRate says whether calls may go at the rate of n in each period per: n is 1 to 1000000000, per is 1µs to 24h, the
// burst is in its range, and comes back within a year.
func ValidateRate(n int, per time.Duration, cfg RateConfig) error {
	switch {
	case n < 1 || n > maxCalls:
		return fmt.Errorf("limit: rate must be 1 to %d in a period, got %d", maxCalls, n)
	case per < time.Microsecond || per > maxPer:
		return fmt.Errorf("limit: period of the rate must be 1µs to 24h, got %v", per)
	case cfg.Burst < 0 || cfg.Burst > maxBurst:
		return fmt.Errorf("limit: burst must be 1 to %d, or 0 for as many as in a period, got %d", maxBurst, cfg.Burst)
	}
	if r := cfg.rate(n, per); r.Fill() > maxFill {
		return fmt.Errorf("limit: burst must be one that comes back within a year, got %d at %d in %v", cfg.Burst, n, per)
	}
	return nil
}

func (cfg RateConfig) rate(n int, per time.Duration) gcra.Rate {
	if cfg.Burst == 0 {
		return gcra.New(n, per, min(n, maxBurst))
	}
	return gcra.New(n, per, cfg.Burst)
}

// A RateLimiter lets calls go at a rate. It may be shared by services of different types, and its rate changed while they
// run. It is made by [NewRateLimiter] and safe for concurrent use.
type RateLimiter struct {
	// mu guards what follows. Whenever it is free, somebody waits exactly if there is a timer, and that goes off when
	// the token of the oldest waiter is due. Tokens are taken here alone, in the order of the line.
	mu      sync.Mutex
	rate    gcra.Rate
	bucket  gcra.Bucket
	waiting queue.Queue[uint64] // is handed the period that the token belongs to
	timer   *time.Timer
	back    window

	admitted, rejected, cancelled, refunded uint64

	onAdmit  func(time.Duration)
	onReject func(error)
}

// NewRateLimiter returns a RateLimiter of n calls in each period per, with a full bucket. It panics with the error of
// [ValidateRate] if there is one.
func NewRateLimiter(n int, per time.Duration, cfg RateConfig) *RateLimiter {
	if err := ValidateRate(n, per, cfg); err != nil {
		panic(err)
	}
	return &RateLimiter{rate: cfg.rate(n, per), bucket: gcra.Full(), onAdmit: cfg.OnAdmit, onReject: cfg.OnReject}
}

// Set changes the rate and the burst, or fails with the error of [ValidateRate]. Calls that have gone count on: what is
// missing from the old burst is missing from the new one.
func (l *RateLimiter) Set(n int, per time.Duration, burst int) error {
	cfg := RateConfig{Burst: burst}
	if err := ValidateRate(n, per, cfg); err != nil {
		return err
	}
	now := clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	next := cfg.rate(n, per)
	l.bucket = next.Move(&l.rate, l.bucket, now)
	l.rate, l.back = next, window{}
	l.settle(now)
	return nil
}

// RateStats is what a RateLimiter has counted, at one moment.
type RateStats struct {
	// Burst is how many calls may go at once, Free how many may go now.
	Burst, Free int
	// Next is how long it takes until a call may go that comes now; 0 if it may at once. Those who wait go before it.
	Next time.Duration
	// Waiting is the number of callers in line.
	Waiting int
	// Admitted counts the tokens that were taken.
	Admitted uint64
	// Refunded counts those among them that came back unused.
	Refunded uint64
	// Rejected counts those who would have had to wait, and could not.
	Rejected uint64
	// Cancelled counts those who left the line because their context ended.
	Cancelled uint64
}

// Stats returns what the RateLimiter has counted.
func (l *RateLimiter) Stats() RateStats {
	now := clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(now)
	return RateStats{
		Burst:     l.rate.Burst(),
		Free:      l.rate.Free(&l.bucket, now),
		Next:      l.rate.Wait(&l.bucket, now, l.waiting.Len()),
		Waiting:   l.waiting.Len(),
		Admitted:  l.admitted,
		Refunded:  l.refunded,
		Rejected:  l.rejected,
		Cancelled: l.cancelled,
	}
}

// acquire takes a token, waiting for it as long as ctx allows, and returns the period that it belongs to, and how long that
// was, if somebody wants to know. Its error is a Rejection.
func (l *RateLimiter) acquire(ctx context.Context) (period uint64, waited time.Duration, err error) {
	if period, ok := l.take(clock()); ok {
		return period, 0, nil
	}
	ended := ctx.Err() // not under the lock
	since := clock()
	w, period, err := l.join(since, ended)
	if w == nil {
		return period, 0, err
	}
	select {
	case <-w.Handed():
		period = w.Value()
	case <-ctx.Done():
		period, err = l.leave(w, ctx.Err())
	}
	if err == nil && l.onAdmit != nil {
		waited = clock() - since
	}
	return period, waited, err
}

// take takes a token that is spoken for by no waiter.
func (l *RateLimiter) take(now time.Duration) (uint64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant(now)
}

// grant takes a token that is left when those who wait have what is due. mu is held.
func (l *RateLimiter) grant(now time.Duration) (uint64, bool) {
	l.settle(now)
	if l.timer != nil || !l.rate.Take(&l.bucket, now) {
		return 0, false
	}
	l.admitted++
	return l.bucket.Period(), true
}

// join takes a token if there is one by now, else gets in line, unless the context has ended. Without a waiter its error
// is the answer.
func (l *RateLimiter) join(now time.Duration, ended error) (*queue.Waiter[uint64], uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if period, ok := l.grant(now); ok {
		return nil, period, nil
	}
	if ended != nil {
		l.rejected++
		return nil, 0, l.refusal("too many", ended, now)
	}
	w := l.waiting.Join(0)
	if l.timer == nil {
		l.timer = time.AfterFunc(l.rate.Wait(&l.bucket, now, 0), l.due)
	}
	return w, 0, nil
}

// leave gives up waiting for the reason ended, unless the token of w is due by now: then w has it. Those behind w move
// up by themselves, for the next token is for whoever is in front.
func (l *RateLimiter) leave(w *queue.Waiter[uint64], ended error) (uint64, error) {
	now := clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(now)
	if !l.waiting.Leave(w) {
		return w.Value(), nil
	}
	l.cancelled++
	l.settle(now)
	return 0, l.refusal("context done while waiting", ended, now)
}

// refusal says when a call may go that comes behind those who wait. mu is held.
func (l *RateLimiter) refusal(reason string, ended error, now time.Duration) error {
	after := l.rate.Wait(&l.bucket, now, l.waiting.Len())
	return &belfry.Rejection{Layer: "rate", Reason: reason, RetryAfter: after, Err: ended}
}

// due gives the oldest waiter its token, and whoever else has one coming.
func (l *RateLimiter) due() {
	now := clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(now)
}

// settle hands tokens to those in front of the line, and sees to the timer. mu is held.
func (l *RateLimiter) settle(now time.Duration) {
	if l.timer == nil {
		return
	}
	for l.waiting.Len() > 0 && l.rate.Take(&l.bucket, now) {
		l.waiting.HandOldest(l.bucket.Period())
		l.admitted++
	}
	if l.waiting.Len() == 0 {
		l.timer.Stop()
		l.timer = nil
		return
	}
	l.timer.Reset(l.rate.Wait(&l.bucket, now, 0))
}

// refund gives back a token of the period for which the inner service had no room.
func (l *RateLimiter) refund(period uint64) {
	now := clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restore(now, period)
}

// release gives back a token that no call was made on. When it was taken nobody remembers: permits that were held for
// long and given back together would be worth more than time has brought, hence the window.
func (l *RateLimiter) release() {
	now := clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.bucket.IsFull(now) && l.back.admits(now, l.rate.Fill(), l.rate.Burst()) {
		l.restore(now, l.bucket.Period())
	}
}

func (l *RateLimiter) restore(now time.Duration, period uint64) {
	if l.rate.Refund(&l.bucket, now, period) {
		l.refunded++
		l.settle(now)
	}
}

// A window admits so many in any span of its length. It counts what is in the current span and in the one before, of
// which some may be too old by now: never too few.
type window struct {
	began         time.Duration
	count, before int
}

func (w *window) admits(now, length time.Duration, most int) bool {
	switch age := now - w.began; {
	case w.count == 0 && w.before == 0 || age >= 2*length:
		*w = window{began: now}
	case age >= length:
		*w = window{began: w.began + length, before: w.count}
	}
	if w.count+w.before >= most {
		return false
	}
	w.count++
	return true
}

// clock is the time where only differences matter: the monotonic clock alone, at half the cost of time.Now.
func clock() time.Duration { return time.Since(began) }

var (
	began            = time.Now()
	errNoRateLimiter = errors.New("limit: rate limiter must not be nil")
)
