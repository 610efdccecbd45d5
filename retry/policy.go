package retry

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/internal/backoff"
)

// A Policy decides about one request. Each request has a Policy of its own, used by one goroutine at a time, so its
// state needs no lock and does not leak from one request into another; what requests share is behind a pointer.
//
// What a Policy cannot decide is decided for it: a request that cannot be sent twice is not sent twice, there is no pause
// that ctx does not outlast, and after ctx has ended there is no further attempt.
type Policy[Req, Res any] interface {
	// Observe is told how an attempt ended, each one, a success too, also that a further attempt got no room, be it
	// because ctx has ended (see [Attempt.Unready]). It reports whether another attempt is wanted. It may change Res
	// and Err of the attempt: they are the result unless there is another attempt.
	Observe(ctx context.Context, a *Attempt[Res]) (again bool)

	// Retry is asked after an Observe that wanted another attempt, if the request can be sent again. It returns how
	// long to pause first, or false to give up after all. It may change next, the request to be sent, a copy of the
	// one before.
	Retry(ctx context.Context, a *Attempt[Res], next *Req) (wait time.Duration, ok bool)
}

// An Attempt is how an attempt ended. It is good until the policy's method returns.
type Attempt[Res any] struct {
	// N is the number of the attempt, from 1.
	N int
	// Unready says that the attempt was not made, because Acquire failed; Err is what it failed with. To try again
	// means to ask for room again; that is paused for too, for Err's retry-after, and for a millisecond at least.
	Unready bool
	// Final says that a layer below would have tried again, but was out of budget, and asks not to do so in its place.
	Final bool
	// Res and Err are what came of the attempt. A policy may replace them. The response that the attempt
	// brought is discarded if another attempt follows or Err is set in its place. A policy that
	// replaces it by another one sees to its end itself.
	Res Res
	Err error
	// Outcome is what the Semantics say about Res and Err.
	Outcome belfry.Outcome
	// Now is the time when the attempt ended.
	Now time.Time

	reason reason
}

// A reason is why there is no other attempt.
type reason uint8

const (
	decided reason = iota // nobody wanted one
	outOfAttempts
	outOfBudget
	outOfTime
	notCopyable
	tooLong
	final
	unready
	reasons // their number
)

// Standard returns policies with the ready-made behaviour, for a [Policy] of one's own to build on. They share one
// budget. It panics with the error of cfg.Validate if there is one.
func Standard[Req, Res any](cfg Config) func() Policy[Req, Res] {
	shared := newSettings(cfg)
	return func() Policy[Req, Res] { return &standard[Req, Res]{settings: shared} }
}

// settings is a Config with its defaults, shared by all requests.
type settings struct {
	maxAttempts   int
	maxRetryAfter time.Duration
	backoff       backoff.Exponential
	budget        *budget.Budget
	dice          dice
	onRetry       func(Event)
}

func newSettings(cfg Config) *settings {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	s := &settings{
		maxAttempts:   cfg.MaxAttempts,
		maxRetryAfter: cfg.MaxRetryAfter,
		backoff:       cfg.Backoff.exponential(),
		budget:        cfg.Budget,
		onRetry:       cfg.OnRetry,
	}
	if s.maxAttempts == 0 {
		s.maxAttempts = DefaultMaxAttempts
	}
	if s.maxRetryAfter == 0 {
		s.maxRetryAfter = 30 * time.Second
	}
	if s.budget == nil {
		s.budget = budget.New(budget.Config{})
	}
	if cfg.Rand != nil {
		s.dice.source = rand.New(cfg.Rand)
	}
	return s
}

// standard is the ready-made Policy.
type standard[Req, Res any] struct {
	*settings
	wait time.Duration // what Observe found that the pause would be
}

// Observe feeds the budget, and decides all that does not cost anything.
func (p *standard[Req, Res]) Observe(ctx context.Context, a *Attempt[Res]) bool {
	switch {
	case a.Unready:
		return false
	case a.Outcome.Kind == belfry.Success:
		p.budget.DepositAt(a.Now)
		return false
	case a.Outcome.Kind != belfry.Failure || !a.Outcome.Retry:
		return false
	case a.N >= p.maxAttempts:
		a.reason = outOfAttempts
	case a.Final:
		a.reason = final
	case a.Outcome.RetryAfter > p.maxRetryAfter:
		a.reason = tooLong
	default:
		p.wait = sum(max(0, a.Outcome.RetryAfter), p.backoff.Delay(a.N-1, p.dice.roll()))
		if !outlasts(ctx, a.Now, p.wait) {
			a.reason = outOfTime
		}
	}
	return a.reason == decided
}

// Retry pays, last of all, so that nothing is paid for in vain.
func (p *standard[Req, Res]) Retry(_ context.Context, a *Attempt[Res], _ *Req) (time.Duration, bool) {
	if !p.budget.WithdrawAt(a.Now) {
		a.reason = outOfBudget
		return 0, false
	}
	if p.onRetry != nil {
		p.onRetry(Event{Attempt: a.N, Outcome: a.Outcome, Err: a.Err, Wait: p.wait})
	}
	return p.wait, true
}

// sum returns a+b, of two durations that are not below 0, or the longest there is.
func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// outlasts reports whether ctx goes on for longer than wait from now.
func outlasts(ctx context.Context, now time.Time, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || now.Add(wait).Before(deadline)
}

// dice is a random source that requests share; each roll moves it on. The zero dice uses the runtime's.
type dice struct {
	mu     sync.Mutex
	source *rand.Rand
}

// roll returns a number in [0, 1).
func (d *dice) roll() float64 {
	if d.source == nil {
		return rand.Float64()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.source.Float64()
}

// asksToBeFinal reports whether err comes from a layer below that was out of budget.
func asksToBeFinal(err error) bool { return err != nil && errors.Is(err, ErrOutOfBudget) }
