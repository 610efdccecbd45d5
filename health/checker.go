package health

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/eject"
)

const layer = "health"

// A checker probes, in one goroutine, and keeps the results.
//
// The goroutine waits for time, for a probe, or for OnChange, and for nothing any more when cancel was called.
// Probes and OnChange run in goroutines of their own, which may panic, and stay for longer than they ought to.
type checker struct {
	probe  func(context.Context) error
	cfg    Config
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended
	shut   chan struct{} // closed when close has

	// ready is what Acquire reads: that the endpoint is healthy or has to stay in, and the checker not closed. It is written under mu.
	ready atomic.Bool

	// mu guards what follows. Nothing is called under it but the guard rail, whose lock comes after this one.
	mu     sync.Mutex
	state  state
	next   time.Time       // of the next probe; in the past while one is running
	cause  error           // of refusals: why the endpoint is, or was, unhealthy
	probed <-chan struct{} // closed when the latest probe has returned
	spared uint64          // probes after which it had to stay in
	closed bool
}

// check begins to probe.
func check(probe func(context.Context) error, cfg Config) *checker {
	ctx, cancel := context.WithCancel(context.Background())
	now := time.Now()
	none := make(chan struct{})
	close(none)
	c := &checker{
		probe:  probe,
		cfg:    cfg,
		cancel: cancel,
		done:   make(chan struct{}),
		shut:   make(chan struct{}),
		state:  begin(now, &cfg),
		cause:  complaint("not probed yet"),
		probed: none,
	}
	c.ready.Store(c.state.well)
	first := cfg.first()
	c.next = now.Add(first)
	if !c.state.well {
		cfg.Guard.Force(now, eject.Health, c.next)
	}
	go c.loop(ctx, first)
	return c
}

func (c *checker) loop(ctx context.Context, pause time.Duration) {
	defer close(c.done)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		r := c.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		pause, changed := c.note(r)
		if changed && c.cfg.OnChange != nil {
			stats := c.stats()
			select {
			case <-run(func() { c.cfg.OnChange(stats) }):
			case <-ctx.Done():
			}
		}
		timer.Reset(pause)
	}
}

// ask probes, for as long as a probe may take, and for a moment more in which it may notice that its time is over.
func (c *checker) ask(ctx context.Context) result {
	select {
	case <-c.latest():
	default:
		return failed(errStuck)
	}
	within, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	answer := make(chan result, 1)
	probed := run(func() { answer <- guard(within, c.probe) })
	c.mu.Lock()
	c.probed = probed
	c.mu.Unlock()
	if !await(ctx, probed, c.cfg.Timeout+grace) {
		return failed(errLate)
	}
	select {
	case r := <-answer:
		return r
	default:
		return failed(errExited)
	}
}

const grace = 100 * time.Millisecond

// await reports whether probed was closed in time.
func await(ctx context.Context, probed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-probed:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

var (
	errLate   = fmt.Errorf("the probe did not return in time: %w", context.DeadlineExceeded)
	errStuck  = errors.New("the last probe has not returned")
	errExited = errors.New("the probe was ended by runtime.Goexit")
)

func (c *checker) latest() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.probed
}

// note keeps the result of a probe. It returns how long to wait before the next, and whether the state has changed.
func (c *checker) note(r result) (pause time.Duration, changed bool) {
	now, slow, fast := time.Now(), c.cfg.pause(false), c.cfg.pause(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.noRoom {
		changed = c.state.result(now, r.err)
	}
	if r.cause != nil {
		c.cause = r.cause
	}
	if pause = slow; c.state.doubt() {
		pause = fast
	}
	c.next = now.Add(pause)
	c.ready.Store(c.stays(now) && !c.closed)
	return pause, changed
}

// stays reports whether calls are let through, and tells the guard rail. An endpoint that was never well was never in. mu is held.
func (c *checker) stays(now time.Time) bool {
	switch {
	case c.state.well:
		c.cfg.Guard.Restore(eject.Health)
		return true
	case c.state.unproven:
		c.cfg.Guard.Force(now, eject.Health, c.next)
		return false
	case c.cfg.Guard.Eject(now, eject.Health, c.next):
		return false
	}
	c.spared++
	return true
}

// admits reports whether a call under ctx is let through.
func (c *checker) admits(ctx context.Context) bool {
	return c.ready.Load() || eject.InPanic(ctx) && !c.isClosed()
}

func (c *checker) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// close ends it all, and reports whether it is the first to do so.
func (c *checker) close() bool {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.ready.Store(false)
	c.mu.Unlock()
	if again {
		<-c.shut
		return false
	}
	defer close(c.shut)
	c.cancel()
	<-c.done
	await(context.Background(), c.latest(), c.cfg.Timeout)
	return true
}

func (c *checker) stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.state
	return Stats{Healthy: s.well, Since: s.since, LastError: s.err, Probes: s.probes, Failures: s.failures, Spared: c.spared}
}

var errClosed error = &belfry.Rejection{Layer: layer, Reason: "closed", Err: belfry.ErrClosed}

// refusal says why a call is not let through.
func (c *checker) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	return &belfry.Rejection{Layer: layer, Reason: "unhealthy", RetryAfter: max(0, time.Until(c.next)), Err: c.cause}
}

// A complaint is what a probe had to say, as the cause of refusals: it tells and does not match the probe's error. That a probe has
// run out of time, or has met a service that is closed, is not what became of the call which is refused.
type complaint string

func (c complaint) Error() string { return string(c) }
func (c complaint) Unwrap() error { return belfry.ErrNotReady }

// run runs f in a goroutine, and closes the channel that it returns when f has ended, however it has. A panic is lost.
func run(f func()) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = recover() }()
		f()
	}()
	return ended
}

// A result is how a probe ended.
type result struct {
	err    error
	cause  error // of refusals, if it failed
	noRoom bool  // it was not sent, and says nothing about the endpoint
}

func failed(err error) result { return result{err: err, cause: complaint(fmt.Sprint(err))} }

// guard calls probe, and the methods of its error, and turns a panic into an error.
func guard(ctx context.Context, probe func(context.Context) error) (r result) {
	defer func() {
		if v := recover(); v != nil {
			r = failed(&PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	err := probe(ctx)
	switch {
	case err == nil && ctx.Err() != nil:
		return failed(errLate)
	case err == nil:
		return result{}
	case errors.Is(err, belfry.ErrNotReady):
		return result{err: err, noRoom: true}
	}
	return failed(err)
}

// A PanicError is the panic of a probe, which counts as its failure.
type PanicError struct {
	// Value is what it panicked with.
	Value any
	// Stack is where.
	Stack []byte
}

// Error says what the probe panicked with.
func (p *PanicError) Error() string { return fmt.Sprintf("the probe panicked: %v", p.Value) }

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
