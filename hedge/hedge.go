// Package hedge sends a request a second time when the first attempt takes longer than usual, and returns the first
// success. It makes the slowest calls faster, at the price of a few per cent more requests.
//
// How long is too long is a fixed delay, or a percentile of how long attempts took in the last full period: with the 95th,
// about one call in twenty is hedged. The percentile is learnt from calls alone; until one period is full, and
// while one has too few, nothing is hedged.
//
// # Readiness
//
// Readiness is the inner service's: Acquire reserves room for the first attempt. Extra attempts reserve inside Call, under
// [belfry.NoWait]: a hedge never queues. Their contexts are marked, so that late layers below (buffer, retry) do not
// let them wait either. What is not ready now is not hedged. A hedge directly over a buffer would find the seat of the first
// attempt only, so [github.com/belfry-go/belfry/stack.Stack.Build] refuses that.
//
// # When a hedge is sent
//
// When the delay has passed, and the call has not ended, an extra attempt is sent if all of this allows it, asked
// in this order: the call is not itself an extra attempt of a hedge further out; the request may be carried out twice,
// and can be copied, by the Semantics; the budget has something left; the inner service grants a permit now; the budget pays. So
// a request that may not be hedged reserves nothing, and nothing is paid for in vain. The copy is made while the first attempt
// is in flight, so what is inside must not change requests in place.
//
// Attempts tell the balancer below where they went, which sends the next one elsewhere if it can.
//
// # Which answer is returned
//
// The first success, by the Semantics. A failure is not an answer while another attempt is in flight; when all have
// failed, the best failure is returned: a response rather than an error, the error of what was sent rather than a
// refusal, and the first of equals. A first attempt that fails before the delay is returned at once: to try again is
// for package retry.
//
// When the answer is there, the other attempts are cancelled ([ErrLost] is the cause) and their responses discarded. The
// context of the attempt that has won lives as long as its response.
//
// # Cancellation
//
// The end of the caller's context ends all attempts, and Call returns when they have. A panic of an attempt, or its Goexit,
// is the caller's as long as there is no answer. (After that there is nobody to have it: [Config].OnPanic is told.)
//
// Extra attempts that have lost may outlive Call, and use its context's values and the request, so a request must stay as it
// is until they have noticed; [Config].WaitLosers is for requests that are used again. The first attempt runs in
// the caller's goroutine, which is what makes a call without a hedge cheap. So when it has lost, Call returns once it
// has noticed that its context has ended, as everywhere in this module; [Config].Detach is for a service that does
// not notice.
//
// # Cost
//
// A call without a hedge costs three allocations and a timer, which the runtime runs without a goroutine; while there
// is no percentile yet, none. A response that is streamed costs one more. With a percentile, a Service holds about 15 KB.
//
// # Origin
//
// Hedged requests are due to Jeffrey Dean and Luiz André Barroso, "The Tail at Scale" (CACM 56(2), 2013); the
// percentile of a rotating window is that of Finagle and of tower's hedge middleware. In the latter the first to end wins,
// an error too, there is no budget, and attempts that lost are left out of the percentile, so that the 90th hedges 16 %.
package hedge

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/internal/window"
)

// What a Config without these numbers means.
const (
	DefaultPercentile = 0.95
	DefaultMinSamples = 50
	DefaultPeriod     = 30 * time.Second
	DefaultMaxHedges  = 1
)

// Config says when hedges are sent. The zero Config hedges what takes longer than the 95th percentile.
type Config struct {
	// Delay is how long to wait for an attempt before an extra one is sent. 0 means that Percentile decides.
	Delay time.Duration
	// Percentile is the share of attempts, above 0 and below 1, that is to be over before an extra one is sent. 0 means
	// [DefaultPercentile]. It goes without a Delay only.
	Percentile float64
	// MinSamples is how many attempts a period needs for its percentile to count, at least 1. 0 means [DefaultMinSamples].
	MinSamples int
	// Period is how long attempts are counted, from a millisecond to an hour; their percentile holds for the period after
	// that. 0 means [DefaultPeriod].
	Period time.Duration
	// MaxHedges is how many extra attempts a call may have, 1 to 10, each a delay after the one before. 0 means
	// [DefaultMaxHedges].
	MaxHedges int
	// Budget pays for the extra attempts. Share one among all that call the same servers. Nil means one of this
	// service's own, with the defaults; [budget.Unlimited] means that none is needed.
	Budget *budget.Budget
	// NoDeposit says that somebody else pays successes into Budget, such as a retry that draws on it too. They must
	// not be paid in twice.
	NoDeposit bool
	// WaitLosers makes Call return only when all its attempts have. It is for requests that are changed or used again
	// after Call.
	WaitLosers bool
	// Detach runs the first attempt in a goroutine of its own, so that Call can return the answer of an extra one although
	// the first does not notice that its context has ended. It costs another goroutine and some 0.7 µs for
	// each call, and goes without WaitLosers only.
	Detach bool
	// OnHedge, if set, is called before an extra attempt is sent, in that one's goroutine, concurrently.
	OnHedge func(Event)
	// OnPanic, if set, is called with the value of a panic of an attempt that had lost, concurrently: its caller has an answer
	// already.
	OnPanic func(value any)
}

// An Event is a decision to send an extra attempt.
type Event struct {
	// Hedge is the number of the extra attempt, from 1.
	Hedge int
	// Delay is how long the attempt before was waited for.
	Delay time.Duration
}

// Validate says which field is out of range, and what the range is.
func (c Config) Validate() error {
	switch {
	case c.Delay < 0:
		return fmt.Errorf("hedge: delay must be at least 0, got %v", c.Delay)
	case !(c.Percentile >= 0 && c.Percentile < 1): // so written, it refuses NaN too
		return fmt.Errorf("hedge: percentile must be above 0 and below 1, or 0 for the default, got %v", c.Percentile)
	case c.Delay != 0 && c.Percentile != 0:
		return fmt.Errorf("hedge: percentile must be 0 with a delay, got %v", c.Percentile)
	case c.MinSamples < 0:
		return fmt.Errorf("hedge: min samples must be at least 1, or 0 for the default, got %d", c.MinSamples)
	case c.Period != 0 && (c.Period < time.Millisecond || c.Period > time.Hour):
		return fmt.Errorf("hedge: period must be within 1ms and 1h, got %v", c.Period)
	case c.MaxHedges < 0 || c.MaxHedges > 10:
		return fmt.Errorf("hedge: max hedges must be within 1 and 10, or 0 for the default, got %d", c.MaxHedges)
	case c.Detach && c.WaitLosers:
		return fmt.Errorf("hedge: detach must be false with wait losers")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Percentile == 0 {
		c.Percentile = DefaultPercentile
	}
	if c.MinSamples == 0 {
		c.MinSamples = DefaultMinSamples
	}
	if c.Period == 0 {
		c.Period = DefaultPeriod
	}
	if c.MaxHedges == 0 {
		c.MaxHedges = DefaultMaxHedges
	}
	if c.Budget == nil {
		c.Budget = budget.New(budget.Config{})
	}
	return c
}

// Service is a service whose slow calls are hedged.
type Service[Req, Res any] struct {
	inner  belfry.Service[Req, Res]
	sem    belfry.Semantics[Req, Res]
	cfg    Config
	window *window.Window // nil with a fixed delay
	began  time.Time

	calls  atomic.Uint64
	counts [events]atomic.Uint64
}

// An event is something worth counting about an extra attempt.
type event uint8

const (
	sent event = iota
	won
	notAllowed
	outOfBudget
	notReady
	panics
	events // their number
)

// New returns inner with hedged calls. It panics with the error of cfg.Validate if there is one.
func New[Req, Res any](inner belfry.Service[Req, Res], cfg Config, sem ...belfry.Semantics[Req, Res]) *Service[Req, Res] {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	s := &Service[Req, Res]{inner: inner, sem: belfry.SemanticsOf(sem), cfg: cfg.withDefaults(), began: time.Now()}
	if cfg.Delay == 0 {
		s.window = window.New(s.cfg.Percentile, s.cfg.MinSamples, s.cfg.Period)
	}
	return s
}

// Layer returns [New] as a layer. Services that it makes share the budget only if cfg has one.
func Layer[Req, Res any](cfg Config, sem ...belfry.Semantics[Req, Res]) belfry.Layer[Req, Res] {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] { return New(inner, cfg, sem...) }
}

var _ belfry.Service[int, int] = (*Service[int, int])(nil)

// Acquire reserves room for the first attempt.
func (s *Service[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	return s.inner.Acquire(ctx)
}

// Call sends req, and once more if the answer is long in coming. The package documentation says which answer it returns.
func (s *Service[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	s.calls.Add(1)
	begin := s.clock()
	delay, ok := s.delay(begin)
	if !ok {
		res, kind, now, err := s.send(ctx, permit, req, begin)
		if kind == belfry.Success {
			s.deposit(now)
		}
		return res, err
	}
	r := &race[Req, Res]{s: s, req: req, delay: delay}
	r.first.Context, r.first.tried = ctx, &r.set
	return r.run(permit, begin)
}

// Release gives the room for the first attempt back.
func (s *Service[Req, Res]) Release(permit belfry.Permit) { s.inner.Release(permit) }

// Stats counts since the service was made, but for Delay. NotAllowed, OutOfBudget and NotReady count extra attempts that were due
// and not sent.
type Stats struct {
	// Calls counts requests; Hedges extra attempts that were sent; Won those whose answer was the first success.
	Calls, Hedges, Won uint64
	// NotAllowed counts those whose request could not be copied, or may not be carried out twice.
	NotAllowed uint64
	// OutOfBudget counts those that the budget refused to pay for.
	OutOfBudget uint64
	// NotReady counts those for which the inner service had no permit at that moment.
	NotReady uint64
	// Panics counts panics of attempts that had lost.
	Panics uint64
	// Delay is how long attempts are waited for now. 0 means that no percentile is known.
	Delay time.Duration
}

// Stats returns what the service has counted.
func (s *Service[Req, Res]) Stats() Stats {
	delay, _ := s.delay(s.clock())
	return Stats{
		Calls:       s.calls.Load(),
		Hedges:      s.counts[sent].Load(),
		Won:         s.counts[won].Load(),
		NotAllowed:  s.counts[notAllowed].Load(),
		OutOfBudget: s.counts[outOfBudget].Load(),
		NotReady:    s.counts[notReady].Load(),
		Panics:      s.counts[panics].Load(),
		Delay:       delay,
	}
}

// Budget returns the budget that pays for extra attempts.
func (s *Service[Req, Res]) Budget() *budget.Budget { return s.cfg.Budget }

// clock is the time since the service was made, or 0 if nobody wants to know.
func (s *Service[Req, Res]) clock() time.Duration {
	if s.window == nil {
		return 0
	}
	return time.Since(s.began)
}

// delay returns how long an attempt is waited for, and false if that is not known. A percentile of 0, which only virtual time
// knows, is no delay.
func (s *Service[Req, Res]) delay(now time.Duration) (time.Duration, bool) {
	if s.window == nil {
		return s.cfg.Delay, true
	}
	d, ok := s.window.Quantile(now)
	return max(d, 0), ok && d > 0
}

// deposit pays for a success, which was at the time now by the clock, if that goes.
func (s *Service[Req, Res]) deposit(now time.Duration) {
	switch {
	case s.cfg.NoDeposit:
	case s.window == nil:
		s.cfg.Budget.Deposit()
	default:
		s.cfg.Budget.DepositAt(s.began.Add(now))
	}
}

// send makes an attempt, says how and when it ended, and learns from how long it took. If that panics, nothing is left of it.
func (s *Service[Req, Res]) send(ctx context.Context, permit belfry.Permit, req Req, begin time.Duration) (res Res, kind belfry.Kind, now time.Duration, err error) {
	res, err = s.inner.Call(ctx, permit, req)
	judged := false
	defer func() {
		if !judged {
			s.sem.Drop(res, err)
		}
	}()
	kind = s.sem.Judge(res, err).Kind
	judged = true
	if s.window != nil {
		now = s.clock()
		s.learn(now, now-begin, kind, err)
	}
	return res, kind, now, err
}

// learn takes note of how long an attempt took. One that was cancelled, or has failed, would have taken longer to succeed;
// one that was not sent says nothing.
func (s *Service[Req, Res]) learn(now, took time.Duration, kind belfry.Kind, err error) {
	switch {
	case kind == belfry.Success:
		s.window.Record(now, took)
	case err == nil || !unsent(err):
		s.window.Censor(now, took)
	}
}
