package breaker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/queue"
)

const layer = "breaker"

// A core is a breaker with a clock and a lock, whatever the types of its service.
type core struct {
	cfg   Config
	began time.Time

	// turn and clean are what calls read of state. They are written under mu, whenever that changes.
	turn  atomic.Uint64 // the state's turn, and openBit unless closed
	clean atomic.Bool

	// mu guards what follows. Nothing of others is called under it but the guard rail, whose lock comes after this one: neither
	// the service, nor a hook, nor a context.
	//
	// Whenever it is free, nobody waits while the breaker is closed or a probe is free: who waits is handed a ticket in the step
	// that makes it so. While somebody waits, the timer is set to when time alone frees a probe.
	mu      sync.Mutex
	state   state
	waiting queue.Queue[ticket]
	timer   *time.Timer // nil until somebody waits
	err     error       // of the latest failure that counted
	cause   error       // of refusals
	failures,
	opened, refused uint64
	news    []Change // not yet told
	telling bool     // a goroutine is at it

	chance sync.Mutex // guards cfg.Rand
}

// A ticket is what a caller is let through on: the number of its probe, 0 while the breaker is closed.
type ticket uint64

const openBit = 1 << 63

func newCore(cfg Config) *core {
	cfg = cfg.withDefaults()
	c := &core{cfg: cfg, began: time.Now(), state: begin(&cfg), cause: belfry.ErrNotReady}
	c.clean.Store(c.state.clean())
	if cfg.Guard != nil {
		// Until when it will be out is said when it is.
		c.state.rules.may = func(now time.Duration) bool { return cfg.Guard.Eject(c.at(now), eject.Breaker, c.at(now)) }
	}
	return c
}

func (c *core) now() time.Duration { return time.Since(c.began) }

// closed reports whether all calls are let through.
func (c *core) closed() bool { return c.turn.Load()&openBit == 0 }

// enter lets a caller through, when there is an opening, or says why not.
func (c *core) enter(ctx context.Context) (ticket, error) {
	ended := ctx.Err() // not under the lock, nor what the error may say for itself
	t, w, err := c.join(ended, c.cfg.Wait && !errors.Is(ended, belfry.ErrNotReady))
	if w == nil {
		return t, err
	}
	select {
	case <-w.Handed():
		return w.Value(), nil
	case <-ctx.Done():
		return c.leave(w, ctx.Err())
	}
}

// join takes a ticket if there is one, else gets in line if the caller waits and its context has not ended.
func (c *core) join(ended error, waits bool) (ticket, *queue.Waiter[ticket], error) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.state.now == Closed:
		return 0, nil, nil
	case c.waiting.Len() == 0 && c.state.free(now):
		return c.take(now), nil, nil
	case !waits:
		return 0, nil, c.refusal(now, c.cause)
	case ended != nil:
		return 0, nil, c.refusal(now, ended)
	}
	w := c.waiting.Join(0)
	c.serve(now)
	return 0, w, nil
}

// leave gives up waiting for the reason ended, unless w was handed a ticket at the same moment: then w has it.
func (c *core) leave(w *queue.Waiter[ticket], ended error) (ticket, error) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.waiting.Leave(w) {
		return w.Value(), nil
	}
	c.serve(now)
	return 0, c.refusal(now, ended)
}

// refusal says why a caller is not let through, and when it may be, as far as that is known: a probe that is out may come
// back at any time. mu is held.
func (c *core) refusal(now time.Duration, cause error) error {
	c.refused++
	r := &belfry.Rejection{Layer: layer, Reason: "open", Err: cause}
	if c.state.now == Open {
		r.RetryAfter = max(0, c.state.until-now)
	} else {
		r.Reason = "half-open"
	}
	return r
}

// A complaint is the error of a failure as the cause of refusals: it tells and does not match that error. What became of a call
// that failed is not what becomes of one that is refused.
type complaint struct{ of error }

func (c *complaint) Error() string { return c.of.Error() }
func (c *complaint) Unwrap() error { return belfry.ErrNotReady }

// holds reports whether t is still good.
func (c *core) holds(t ticket) bool {
	if t == 0 {
		return c.closed()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.out(uint64(t))
}

// giveBack returns a ticket that no call was made on, or whose call says nothing.
func (c *core) giveBack(t ticket) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.returned(uint64(t))
	c.serve(now)
}

// probed notes how the call on a probe's ticket ended.
func (c *core) probed(t ticket, out belfry.Outcome, err error) {
	if out.Kind != belfry.Success && out.Kind != belfry.Failure {
		c.giveBack(t)
		return
	}
	now, u := c.now(), c.random()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.out(uint64(t)) {
		return
	}
	if out.Kind == belfry.Failure {
		c.fail(err)
	}
	c.changing(func() { c.state.probed(now, uint64(t), out, u) })
	c.serve(now)
}

// ended notes the end of a call that began in turn.
func (c *core) ended(turn uint64, out belfry.Outcome, err error) {
	switch {
	case turn&openBit != 0:
	case out.Kind == belfry.Failure:
		c.failed(turn, out, err)
	case out.Kind == belfry.Success && !c.clean.Load():
		c.succeeded(turn, out)
	}
}

func (c *core) succeeded(turn uint64, out belfry.Outcome) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn.Load() == turn {
		c.state.ended(now, out, 0)
		c.clean.Store(c.state.clean())
	}
}

func (c *core) failed(turn uint64, out belfry.Outcome, err error) {
	now, u := c.now(), c.random()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn.Load() == turn {
		c.fail(err)
		c.changing(func() { c.state.ended(now, out, u) })
	}
}

// fail keeps why a call that counts failed. mu is held.
func (c *core) fail(err error) {
	c.failures++
	c.err = err
}

var errTripped = errors.New("opened by hand")

func (c *core) trip(d time.Duration) {
	now, u := c.now(), c.random()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errTripped
	c.changing(func() { c.state.trip(now, d, u) })
	c.serve(now)
}

func (c *core) reset() {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = nil
	c.changing(func() { c.state.close(now) })
	c.serve(now)
}

// take lets a probe through. mu is held.
func (c *core) take(now time.Duration) (t ticket) {
	c.changing(func() { t = ticket(c.state.take(now)) })
	return t
}

// changing does what may change the state, shows the result to those who read without the lock, and has the hook told. mu is
// held.
func (c *core) changing(f func()) {
	before := c.state.now
	f()
	c.clean.Store(c.state.clean())
	turn := c.state.turn
	if c.state.now != Closed {
		turn |= openBit
	}
	c.turn.Store(turn)
	c.eject()
	if c.state.now == before {
		return
	}
	if c.state.now == Open {
		c.opened++
		c.cause = belfry.ErrNotReady
		if c.err != nil {
			c.cause = &complaint{c.err}
		}
	}
	c.tell(before)
}

// eject tells the guard rail, which has been asked, or is not to be. mu is held.
func (c *core) eject() {
	switch c.state.now {
	case Closed:
		c.cfg.Guard.Restore(eject.Breaker)
	case Open:
		c.cfg.Guard.Force(c.at(c.state.since), eject.Breaker, c.at(c.state.until))
	case HalfOpen:
	}
}

// serve hands out the tickets that there are, and sets the timer for those who still wait. mu is held.
func (c *core) serve(now time.Duration) {
	for c.state.now == Closed && c.waiting.HandOldest(0) {
		continue
	}
	if c.waiting.Len() > 0 && c.state.free(now) {
		c.waiting.HandOldest(c.take(now))
	}
	switch {
	case c.waiting.Len() > 0:
		c.wake(c.state.next() - now)
	case c.timer != nil:
		c.timer.Stop()
	}
}

// wake serves again after d. mu is held.
func (c *core) wake(d time.Duration) {
	if c.timer != nil {
		c.timer.Reset(d)
		return
	}
	c.timer = time.AfterFunc(d, func() {
		now := c.now()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.serve(now)
	})
}

// random returns a random number in [0, 1).
func (c *core) random() float64 {
	if c.cfg.Rand == nil {
		return rand.Float64()
	}
	c.chance.Lock()
	defer c.chance.Unlock()
	return rand.New(c.cfg.Rand).Float64()
}

// tell has the hook told of the present state. mu is held.
func (c *core) tell(before State) {
	if c.cfg.OnChange == nil {
		return
	}
	news := Change{From: before, To: c.state.now, At: c.at(c.state.since), Err: c.err}
	if c.state.now == Open {
		news.NextProbe = c.at(c.state.until)
	}
	c.news = append(c.news, news)
	if !c.telling {
		c.telling = true
		go c.tellAll()
	}
}

// tellAll tells the hook, until there is no more to tell.
func (c *core) tellAll() {
	returned := false
	defer func() {
		_ = recover()
		if !returned { // the hook did not
			go c.tellAll()
		}
	}()
	for news, ok := c.latest(); ok; news, ok = c.latest() {
		c.cfg.OnChange(news)
	}
	returned = true
}

// latest returns what is to be told next.
func (c *core) latest() (Change, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.news) == 0 {
		c.telling, c.news = false, nil
		return Change{}, false
	}
	news := c.news[0]
	c.news = c.news[1:]
	return news, true
}

func (c *core) at(d time.Duration) time.Time { return c.began.Add(d) }

func (c *core) stats() Stats {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.state
	stats := Stats{
		State: s.now, Since: c.at(s.since), LastError: c.err, Consecutive: s.run, Failures: c.failures,
		Opened: c.opened, Spared: s.spared, Probes: s.probes, Refused: c.refused, Waiting: c.waiting.Len(),
	}
	if s.rules.ratio > 0 {
		s.recent.advance(now)
		stats.RecentCalls, stats.RecentFailures = s.recent.calls, s.recent.failures
	}
	if s.now != Closed {
		stats.NextProbe = c.at(max(s.next(), s.since))
	}
	return stats
}
