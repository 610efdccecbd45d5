// Package eject is one guard rail for all that takes endpoints out of a fleet: breakers, health checks, outlier detection, and
// servers that say they are overloaded. Each of them judges one endpoint and is right about it; together they could leave nobody.
//
// A [Guard] knows the endpoints of one balancer, and how many are out. Whoever wants to take one out asks first, by
// [Endpoint.Eject], and leaves it in if the answer is no: when more than a share of all would be out, a tenth by default though
// one always may be, or fewer than a number would be left. An endpoint that is out for one reason may be so for others too, and counts
// once. So what is left in does its share badly, instead of the rest doing all of it until they fail as well. That
// at most a tenth should be out, and one always may be, is Envoy's rule; that the last ones never are was asked of linkerd.
//
// Where all the same nobody is left in (the others have gone, or a Config of one's own allows it), a balancer panics: it asks
// endpoints although they are out, under a context that says so ([Panic]), those that are about to be tried again first ([Probing]),
// then those whose latest failure, or such a call, is the longest ago. Layers that have ejected an endpoint let such calls through.
//
// A balancer makes the Guard, and hands each dialler its Endpoint in the context ([From]). All is a function of the time that it is given. Guard and
// Endpoint are safe for concurrent use, and call nothing, so they may be asked under a lock. A nil Endpoint is one without a guard rail:
// it may always be ejected, and is never out.
package eject

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how many endpoints may be out at a time. The zero value is ready to use.
type Config struct {
	// MaxShare is the share of all endpoints that may be out, at most 1, rounded down; but one always may be. 0 means 0.1.
	MaxShare float64
	// Keep is how many endpoints are never taken out, whatever MaxShare says. 0 means 1; below 0 means that all may be out.
	Keep int
}

const (
	defaultMaxShare = 0.1
	defaultKeep     = 1
)

// Validate says which field is out of range.
func (c Config) Validate() error {
	if !(c.MaxShare >= 0 && c.MaxShare <= 1) { // so written, it refuses NaN too
		return fmt.Errorf("eject: max share must be within 0 and 1, got %v", c.MaxShare)
	}
	return nil
}

// Allowed returns how many of n endpoints may be out at a time.
func (c Config) Allowed(n int) int {
	share, keep := c.MaxShare, c.Keep
	if share == 0 {
		share = defaultMaxShare
	}
	if keep == 0 {
		keep = defaultKeep
	}
	most := max(1, int(math.Floor(share*float64(n)+1e-9))) // 0.07 × 100 is less than 7 in binary, for one
	return max(0, min(most, n-max(keep, 0)))
}

// Why an endpoint is taken out.
type Why uint8

const (
	// Breaker has seen it fail.
	Breaker Why = iota
	// Health is that its probes fail.
	Health
	// Outlier is that it does worse than its peers.
	Outlier
	// Overload is that it has asked to be left alone.
	Overload

	// Whys is how many there are.
	Whys
)

// String returns the reason in lower case.
func (w Why) String() string {
	switch w {
	case Breaker:
		return "breaker"
	case Health:
		return "health"
	case Outlier:
		return "outlier"
	case Overload:
		return "overload"
	case Whys:
	}
	return "unknown"
}

// timed reports whether the time that is over ends an ejection by itself.
func (w Why) timed() bool { return w == Outlier || w == Overload }

// A Guard is the guard rail of one fleet.
type Guard struct {
	cfg Config

	// out mirrors len(outs), and due when the first of them may end by time alone.
	out atomic.Int32
	due atomic.Int64

	// mu guards what follows, and most of each Endpoint. Nothing is called under it.
	mu      sync.Mutex
	members int
	outs    []*Endpoint // members that are out, or were when somebody last looked
	ejected [Whys]uint64
	refused [Whys]uint64
}

// New returns a Guard without endpoints. It panics with the error of cfg.Validate if there is one.
func New(cfg Config) *Guard {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &Guard{cfg: cfg}
}

// Any reports whether any endpoint is out at now. It is quick if none is.
func (g *Guard) Any(now time.Time) bool {
	if g.out.Load() == 0 {
		return false
	}
	if at := ticks(now); at >= g.due.Load() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.sweep(at)
	}
	return g.out.Load() > 0
}

// Quiet reports that no endpoint has been out for a while. Unlike Any it needs no time, and may be late to say so.
func (g *Guard) Quiet() bool { return g.out.Load() == 0 }

// Stats is what there is to see of a Guard.
type Stats struct {
	// Endpoints is how many there are, Out how many of them are out, and Allowed how many may be.
	Endpoints, Out, Allowed int
	// Ejected counts the ejections by reason, Refused those that would have been too many.
	Ejected, Refused [Whys]uint64
}

// Stats returns what there is to see at now.
func (g *Guard) Stats(now time.Time) Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(ticks(now))
	return Stats{g.members, len(g.outs), g.cfg.Allowed(g.members), g.ejected, g.refused}
}

// sweep lets those in whose time is over. mu is held.
func (g *Guard) sweep(now int64) {
	if now < g.due.Load() {
		return
	}
	g.outs = slices.DeleteFunc(g.outs, func(e *Endpoint) bool { return !e.expire(now) })
	g.mirror()
}

// mirror shows what outs has become. mu is held.
func (g *Guard) mirror() {
	due := int64(math.MaxInt64)
	for _, e := range g.outs {
		for why := range Whys {
			if e.why[why] && why.timed() {
				due = min(due, e.until[why])
			}
		}
	}
	g.due.Store(due)
	g.out.Store(int32(len(g.outs)))
}

// New returns an endpoint of g, which does not count before it has joined.
func (g *Guard) New() *Endpoint { return &Endpoint{guard: g} }

// An Endpoint is what the guard rail knows of one.
type Endpoint struct {
	guard *Guard

	// back is the latest time until which it is out, 0 if it is in; failed when it was ejected last. They mirror the rest.
	back   atomic.Int64
	failed atomic.Int64

	// Guarded by guard.mu.
	joined bool
	why    [Whys]bool
	until  [Whys]int64
}

// Join counts e among the endpoints that there are. Joining again does nothing.
func (e *Endpoint) Join() {
	if e == nil {
		return
	}
	g := e.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.joined {
		return
	}
	e.joined = true
	g.members++
	if e.ejected() {
		g.outs = append(g.outs, e)
		g.mirror()
	}
}

// Leave ends that.
func (e *Endpoint) Leave() {
	if e == nil {
		return
	}
	g := e.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	if !e.joined {
		return
	}
	e.joined = false
	g.members--
	g.forget(e)
}

// Eject asks to take e out at now, until a time before which it is not worth asking. It reports false, and counts that, if too many
// are out already: then leave it in, and ask again when there is more to say against it. Of an endpoint that is out it only says until when.
//
// Overload and Outlier end then; Breaker and Health when they are told to, and until is when they try.
func (e *Endpoint) Eject(now time.Time, why Why, until time.Time) bool {
	return e.eject(now, why, until, false)
}

// Force is Eject without asking: for who is told to by hand, or has never let the endpoint in.
func (e *Endpoint) Force(now time.Time, why Why, until time.Time) { e.eject(now, why, until, true) }

func (e *Endpoint) eject(now time.Time, why Why, until time.Time, force bool) bool {
	if e == nil {
		return true
	}
	at, g := ticks(now), e.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(at)
	in := !e.ejected()
	if in && e.joined && !force && len(g.outs) >= g.cfg.Allowed(g.members) {
		g.refused[why]++
		return false
	}
	if !e.why[why] {
		g.ejected[why]++
	}
	e.why[why], e.until[why] = true, max(ticks(until), 1)
	e.failed.Store(at)
	e.mirror()
	if in && e.joined {
		g.outs = append(g.outs, e)
	}
	g.mirror()
	return true
}

// Restore ends the ejection for one reason. There may be others.
func (e *Endpoint) Restore(why Why) {
	if e == nil {
		return
	}
	g := e.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	if !e.why[why] {
		return
	}
	e.why[why] = false
	e.mirror()
	if !e.ejected() {
		g.forget(e)
	}
}

// forget takes e off those that are out. mu is held.
func (g *Guard) forget(e *Endpoint) {
	if i := slices.Index(g.outs, e); i >= 0 {
		g.outs = slices.Delete(g.outs, i, i+1)
		g.mirror()
	}
}

// ejected reports whether there is any reason. The guard's mu is held.
func (e *Endpoint) ejected() bool { return slices.Contains(e.why[:], true) }

// expire ends what time ends, and reports whether e is still out. The guard's mu is held.
func (e *Endpoint) expire(now int64) bool {
	for why := range Whys {
		if e.why[why] && why.timed() && e.until[why] <= now {
			e.why[why] = false
		}
	}
	e.mirror()
	return e.ejected()
}

// mirror shows until when e is out. The guard's mu is held.
func (e *Endpoint) mirror() {
	back := int64(0)
	for why := range Whys {
		if e.why[why] {
			back = max(back, e.until[why])
		}
	}
	e.back.Store(back)
}

// A Grade says in which order endpoints are asked when not enough are in. Less is better.
type Grade uint8

const (
	// In is an endpoint that nobody has ejected.
	In Grade = iota
	// Probing is ejected, and it is time to try it.
	Probing
	// Out is not to be asked.
	Out
)

// Grade returns how e stands at now.
func (e *Endpoint) Grade(now time.Time) Grade {
	if e == nil {
		return In
	}
	switch back := e.back.Load(); {
	case back == 0:
		return In
	case back > ticks(now):
		return Out
	}
	return Probing
}

// Until returns how long after now e is out, 0 if it is not.
func (e *Endpoint) Until(now time.Time) time.Duration {
	if e == nil {
		return 0
	}
	return time.Duration(max(e.back.Load()-ticks(now), 0))
}

// Failed orders endpoints by when they were ejected, or asked in a panic, last; the longest ago first.
func (e *Endpoint) Failed() int64 {
	if e == nil {
		return 0
	}
	return e.failed.Load()
}

// Touch puts e behind all others that are out, because it was just asked although it is.
func (e *Endpoint) Touch(now time.Time) {
	if e != nil {
		e.failed.Store(ticks(now))
	}
}

// Reasons returns why e is out, none if it is in.
func (e *Endpoint) Reasons(now time.Time) (all []Why) {
	if e == nil {
		return nil
	}
	e.guard.mu.Lock()
	defer e.guard.mu.Unlock()
	e.guard.sweep(ticks(now))
	for why := range Whys {
		if e.why[why] && !(why.timed() && e.until[why] <= ticks(now)) {
			all = append(all, why)
		}
	}
	return all
}

// start is what times are counted from; what matters is only that all are counted from the same.
var start = time.Now()

// ticks is t in nanoseconds, more than 0 for all times that there are clocks for.
func ticks(t time.Time) int64 { return min(int64(t.Sub(start)), 1<<62-1) + 1<<62 }

type (
	endpointKey struct{}
	panicKey    struct{}
)

// With returns ctx with e, for a dialler.
func With(ctx context.Context, e *Endpoint) context.Context {
	return context.WithValue(ctx, endpointKey{}, e)
}

// From returns the endpoint that is being dialled under ctx, nil if nobody guards it.
func From(ctx context.Context) *Endpoint {
	e, _ := ctx.Value(endpointKey{}).(*Endpoint)
	return e
}

// Panic returns ctx marked: whoever acquires under it has nobody else to ask.
func Panic(ctx context.Context) context.Context { return context.WithValue(ctx, panicKey{}, true) }

// InPanic reports whether ctx is marked so.
func InPanic(ctx context.Context) bool { return ctx.Value(panicKey{}) != nil }
