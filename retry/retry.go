// Package retry sends a request again when its answer says that another attempt may succeed. It is late after the first
// attempt: that one spends the room which the caller reserved (readiness is the inner service's), each further attempt
// reserves anew, inside Call.
//
// The ready-made behaviour of [New] tries again after a failure that [belfry.Semantics] calls worth it, a few times,
// after pauses that grow and have jitter, and never sooner than the answer's retry-after. A refusal made here, before
// anything was sent, is not tried again. Another attempt is made only if all of this allows it: the number of
// attempts, the time that ctx has left, the request (it can be copied, or was not sent), and a budget that is fed by
// successes. If one does not, the last answer is returned. [NewPolicy] decides by a [Policy] of one's own, which sees
// every answer and may change requests and results.
//
// # Order
//
// Between two attempts these things happen, in this order: the decision; the end of the response, by the Discard of
// the Semantics; the pause; Acquire; Call. So nothing is held during a pause, neither room nor a response, and a
// limit inside is free for others meanwhile. The price: when ctx ends in the pause, or the inner service refuses, the
// response is gone. Call then returns an [*Error], which has the discarded response and its outcome, or the last
// error, and why there was no further attempt. Once an attempt was sent, no error matches [belfry.ErrRejected] any
// more.
//
// A request is copied only when all but the budget allows another attempt, which pays last, so that it never pays in vain:
// a call that succeeds at first copies nothing. An attempt that was not sent leaves its request intact; that may be sent
// again even if it cannot be copied.
//
// # Cancellation
//
// A pause ends with ctx. If ctx would end before the pause does, there is no pause: the last answer is returned at once.
// Call does not return while an attempt is running, and cancels none; the context of an attempt lives as long as ctx, so
// that its response may be read. Attempts tell the balancer below what was tried before.
//
// # Retries of retries
//
// Where retries are stacked, or services that retry call each other, attempts multiply. So a call that is out of
// budget asks those further out not to try in its place: its error matches [ErrOutOfBudget], and a response marks the
// contexts that it is an attempt of. New obeys; a Policy finds the wish in [Attempt.Final].
//
// # Origin
//
// The division of labour between layer and policy is that of tower's retry middleware, the budget is Finagle's (see
// package budget), the back-off is the "full jitter" of Marc Brooker's "Exponential Backoff And Jitter" (AWS
// Architecture Blog, 2015).
//
// A call that succeeds at once adds one allocation.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/backoff"
)

// DefaultMaxAttempts is what a Config without MaxAttempts means.
const DefaultMaxAttempts = 3

// Config is the ready-made behaviour. The zero Config tries up to three times.
type Config struct {
	// MaxAttempts is how often a request is sent at most, the first time included. 0 means [DefaultMaxAttempts]; 1 means
	// no retries.
	MaxAttempts int
	// Backoff is how long to pause between attempts.
	Backoff Backoff
	// MaxRetryAfter is the longest that an answer may ask to wait. One that asks for more is returned: to come
	// back sooner than asked would only add load. 0 means 30 s.
	MaxRetryAfter time.Duration
	// Budget pays for the further attempts. Share one among all that call the same servers. Nil means one of this
	// service's own, with the defaults; [budget.Unlimited] means that none is needed.
	Budget *budget.Budget
	// Rand is where jitter comes from. Each service uses it under a lock of its own, so it has to be safe for concurrent
	// use if several services share it, such as those of one Layer or one stack. Nil means the runtime's own source.
	Rand rand.Source
	// OnRetry, if set, is called when another attempt was decided on, before its pause, which begins when it returns.
	OnRetry func(Event)
}

// Backoff says how pauses grow: pause i is min(Max, Min·2^i), of which chance takes away up to the share Jitter. A
// retry-after is added to it, so that clients which were told the same do not come back together.
type Backoff struct {
	// Min is the first pause before jitter, at least a millisecond. 0 means 50 ms.
	Min time.Duration
	// Max is the longest pause before jitter, at least Min. 0 means 10 s, or Min if that is longer.
	Max time.Duration
	// Jitter is the share of a pause that chance may take away, in (0, 1]. 0 means 1, all of it.
	Jitter float64
}

// An Event is a decision to try again.
type Event struct {
	// Attempt is the number of the attempt that failed, from 1.
	Attempt int
	// Outcome is how it ended, Err its error; nil if it ended with a response.
	Outcome belfry.Outcome
	Err     error
	// Wait is how long the pause will be.
	Wait time.Duration
}

// Validate says which field is out of range, and what the range is.
func (c Config) Validate() error {
	switch {
	case c.MaxAttempts < 0:
		return fmt.Errorf("retry: max attempts must be at least 1, or 0 for the default, got %d", c.MaxAttempts)
	case c.MaxRetryAfter < 0:
		return fmt.Errorf("retry: max retry-after must be at least 0, got %v", c.MaxRetryAfter)
	}
	if err := c.Backoff.exponential().Validate(); err != nil {
		return fmt.Errorf("retry: backoff %w", err)
	}
	return nil
}

// exponential returns b with its defaults filled in.
func (b Backoff) exponential() backoff.Exponential {
	if b.Min == 0 {
		b.Min = 50 * time.Millisecond
	}
	if b.Max == 0 {
		b.Max = max(10*time.Second, b.Min)
	}
	return backoff.Exponential(b)
}

// Service is a service whose requests are sent again.
type Service[Req, Res any] struct {
	inner     belfry.Service[Req, Res]
	sem       belfry.Semantics[Req, Res]
	standard  *settings               // what New was given, or nil
	newPolicy func() Policy[Req, Res] // what NewPolicy was given, or nil
	prompt    bool

	calls   atomic.Uint64
	retries atomic.Uint64
	ends    [reasons]atomic.Uint64
}

// New returns inner with the ready-made behaviour. It panics with the error of cfg.Validate if there is one.
func New[Req, Res any](inner belfry.Service[Req, Res], cfg Config, sem ...belfry.Semantics[Req, Res]) *Service[Req, Res] {
	return &Service[Req, Res]{inner: inner, sem: belfry.SemanticsOf(sem), standard: newSettings(cfg), prompt: belfry.IsPrompt(inner)}
}

// Layer returns [New] as a layer. Services that it makes share the budget only if cfg has one.
func Layer[Req, Res any](cfg Config, sem ...belfry.Semantics[Req, Res]) belfry.Layer[Req, Res] {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] { return New(inner, cfg, sem...) }
}

// NewPolicy returns inner with the behaviour of policies of one's own: newPolicy makes one for each request. It panics
// if newPolicy is nil.
func NewPolicy[Req, Res any](inner belfry.Service[Req, Res], newPolicy func() Policy[Req, Res], sem ...belfry.Semantics[Req, Res]) *Service[Req, Res] {
	if newPolicy == nil {
		panic(errNoPolicy)
	}
	return &Service[Req, Res]{inner: inner, sem: belfry.SemanticsOf(sem), newPolicy: newPolicy}
}

var errNoPolicy = errors.New("retry: newPolicy must not be nil")

// PolicyLayer returns [NewPolicy] as a layer. It panics as NewPolicy does.
func PolicyLayer[Req, Res any](newPolicy func() Policy[Req, Res], sem ...belfry.Semantics[Req, Res]) belfry.Layer[Req, Res] {
	if newPolicy == nil {
		panic(errNoPolicy)
	}
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] {
		return NewPolicy(inner, newPolicy, sem...)
	}
}

var _ belfry.Service[int, int] = (*Service[int, int])(nil)

// Acquire reserves room for the first attempt.
func (s *Service[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	return s.inner.Acquire(ctx)
}

// Call sends req until an answer is to be returned. The package documentation says what errors it returns.
func (s *Service[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	s.calls.Add(1)
	if s.standard == nil {
		r := &run[Req, Res]{s: s, own: attempt.Context{Context: ctx}, permit: permit, reserved: true}
		r.ctx = &r.own
		return r.do(ctx, req)
	}
	attempts := &attempt.Context{Context: ctx}
	res, err := s.inner.Call(attempts, permit, req)
	out := s.judge(res, err)
	if out.Kind == belfry.Success { // as most calls end: then there is nothing to decide, nor to remember
		s.standard.budget.Deposit()
		return res, err
	}
	r := &run[Req, Res]{s: s, ctx: attempts, policy: &standard[Req, Res]{settings: s.standard}}
	r.ended(res, out, err)
	return r.do(ctx, req)
}

// Prompt reports whether the inner service is a [belfry.Prompter] that is; with a Policy, which is made first, it is not.
func (s *Service[Req, Res]) Prompt(as any) bool { return s.prompt && as == any(s) }

// Release gives the room for the first attempt back.
func (s *Service[Req, Res]) Release(permit belfry.Permit) { s.inner.Release(permit) }

// Stats counts since the service was made. The counts from OutOfAttempts on are calls that wanted another attempt, or
// were worth one, and why it was not made; a Policy's own reasons are not among them.
type Stats struct {
	// Calls counts requests; Attempts how often they were sent, or refused on the way; Retries those attempts
	// that were not the first.
	Calls, Attempts, Retries uint64
	// OutOfAttempts counts calls that had MaxAttempts.
	OutOfAttempts uint64
	// OutOfBudget counts calls that the budget refused to pay for.
	OutOfBudget uint64
	// OutOfTime counts calls whose context had ended, or would have before the end of the pause.
	OutOfTime uint64
	// NotCopyable counts calls whose request cannot be sent twice.
	NotCopyable uint64
	// TooLong counts answers that asked to wait for more than MaxRetryAfter.
	TooLong uint64
	// Final counts answers that asked not to be tried again, because a layer below was out of budget.
	Final uint64
	// Unready counts calls that were to be tried again and then got no room: the inner service refused,
	// or the context ended first.
	Unready uint64
}

// Stats returns what the service has counted.
func (s *Service[Req, Res]) Stats() Stats {
	calls, retries := s.calls.Load(), s.retries.Load()
	return Stats{
		Calls:         calls,
		Attempts:      calls + retries,
		Retries:       retries,
		OutOfAttempts: s.ends[outOfAttempts].Load(),
		OutOfBudget:   s.ends[outOfBudget].Load(),
		OutOfTime:     s.ends[outOfTime].Load(),
		NotCopyable:   s.ends[notCopyable].Load(),
		TooLong:       s.ends[tooLong].Load(),
		Final:         s.ends[final].Load(),
		Unready:       s.ends[unready].Load(),
	}
}

// Budget returns the budget that pays for further attempts, nil for a service of [NewPolicy].
func (s *Service[Req, Res]) Budget() *budget.Budget {
	if s.standard == nil {
		return nil
	}
	return s.standard.budget
}
