// Package balance is a service over many endpoints: each call goes to the better of two that are drawn at random, among
// those that have room.
//
// Endpoints come from a source of changes (package discover), and each is dialled, again and again if need be. For a call, two different endpoints
// are drawn, and the one of lower cost (package load) is asked for a permit, then the other, then all that are left, the better of two at a time
// as long as they seem to have room; nothing is reserved on endpoints that were not chosen. An attempt of a retry or a hedge asks those that were
// tried before last. The power of two choices is due to Azar, Broder, Karlin and Upfal (1994) and to Mitzenmacher (1996); choosing only among
// endpoints that are ready is how Rust's tower does it.
//
// Endpoints may differ in what their source says of them ([discover.Change]). Those of the lowest priority number are chosen first; where less
// than 1/1.4 of them is ready, a part of the calls goes to the next, as in Envoy; what fails and is not ejected, because too many would be, counts
// as ready. Of these, those in Config.Zone are preferred, while they have room and are not slow. Of these, a weight is drawn, with a chance that
// is exactly its share in the sum of all, and the better of two among the endpoints that have it: so use few different weights. Who has no room
// gives way to the others, in the same order. A later attempt goes to another zone and another host than those before, where there are any, even
// if that is not Config.Zone.
//
// A call counts as much as [belfry.Semantics].Cost says of its request, in the cost of its endpoint, until it is over. A permit, which is for any
// request, counts as one. So a call is placed before its own cost is known, which would add the same to every candidate, and by what those before it
// cost. Limits count calls whatever they cost.
//
// Servers may say how busy they are, in answers to calls or to probes ([Reporter], [Prober]), and a metric may listen: [load.Reported] in the cost of an
// endpoint; [load.Probing], which also says who is to be asked, by the endpoint that it prefers, which is asked for a permit before any are drawn.
// Where endpoints differ in weight, zone or priority, or keys count (Config.ByKey), it is the costs that count. A probe is a goroutine, and allocates.
//
// A Balancer is ready when one of its endpoints is. While none is, callers wait, first come, first served, and every
// endpoint that is not ready has one goroutine which waits for its room and hands it over to whoever is first. Config.MaxWait
// bounds the wait while no endpoint is known, the context any other. An endpoint whose Acquire fails is not ready
// now: it is asked again after the pause that its refusal asks for, or a growing one. An endpoint whose service is
// [belfry.ErrClosed] is out until the source names it again.
//
// Which endpoints were drawn for a call, what they cost, and how it went, is kept for the latest Config.Decisions: see [Balancer.Decisions].
//
// Endpoints that breakers, health checks and the like have ejected through the guard rail (package eject) are not asked. When
// no other is left to hope for, they are asked all the same, in an order of their own; Stats count how often. Nor is an endpoint asked, for a while, that a
// failed response asks to leave alone, by its retry-after (Config.MaxRetryAfter).
//
// An endpoint that is removed and comes back within a minute (Config.Remember) is known: a DNS answer that comes and goes costs it no
// history.
//
// The context of a waiting caller never reaches the endpoints, so that what one caller starts (a connection, a
// probe) does not end with it. A caller that leaves gives up its place at once. Cancelling a call ends its context,
// and the call when the endpoint notices.
//
// A call adds no allocation if the endpoint's permit is the zero Permit, else one; one more if its response is streamed; and
// two if it is a later attempt.
package balance

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/backoff"
	"github.com/belfry-go/belfry/internal/queue"
	"github.com/belfry-go/belfry/load"
)

// A Balancer is a service over the endpoints that its source names.
type Balancer[Req, Res any] struct {
	dial    func(ctx context.Context, key, addr string) (belfry.Service[Req, Res], error)
	sem     belfry.Semantics[Req, Res]
	cfg     Config
	backoff backoff.Exponential
	random  rand.Source // safe for concurrent use
	fleet   load.Fleet
	timed   bool
	chooser load.Chooser // fleet, if it is one
	probes  probes
	began   time.Time
	guard   *eject.Guard
	panics  panics
	memory  memory
	ring    *ring // nil unless decisions are kept

	// ready is what the request path reads: the endpoints that have a service. Each set is immutable.
	ready atomic.Pointer[set[Req, Res]]
	// waiting mirrors waiters.Len, for the request path.
	waiting atomic.Int32
	// troubled mirrors how many endpoints have an error to show.
	troubled atomic.Int32

	// mu guards what follows and the part of each endpoint that says so. Nothing of others is called under it but the guard rail: not an
	// endpoint's service, the dialler, the metric, a hook or a context.
	//
	// Whenever it is free: if callers wait, every endpoint in ready has a driver, which hands over what it
	// is granted. A caller joins the line before the drivers are started, so it misses nothing.
	mu      sync.Mutex
	waiters queue.Queue[*grant]
	members map[string]*endpoint[Req, Res] // the newest of each key
	listed  []*endpoint[Req, Res]          // all that are not over, in order of appearance
	graded  bool                           // endpoints have had weights, priorities or zones that matter
	orphan  *endpoint[Req, Res]            // the source has taken it, and it stays because it was the last
	usable  int                            // members and predecessors that are not closed
	resting int                            // those of ready without a driver
	famine  famine                         // goes on while usable is 0
	source  error                          // of discovery, nil after a change
	ended   bool                           // the source is
	closed  bool
	shut    chan struct{}  // closed when Close is done
	drivers sync.WaitGroup // added to under mu, unless closed
}

// New returns a Balancer over the endpoints of source, which it reads in a goroutine of its own until [Balancer.Close].
// Every endpoint gets its service from dial, whose ctx ends when the endpoint is removed, and so must not be kept by the
// service: the last calls outlive it. A service that has a method Close() error is closed when the endpoint is
// removed and the last of its calls is over. sem says which calls fail and when they are over.
//
// It fails as [Config.Validate] does. It does not wait for endpoints: the first calls do.
func New[Req, Res any](
	source iter.Seq2[discover.Change, error],
	dial func(ctx context.Context, key, addr string) (belfry.Service[Req, Res], error),
	cfg Config,
	sem ...belfry.Semantics[Req, Res],
) (*Balancer[Req, Res], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if source == nil || dial == nil {
		return nil, errors.New("balance: source and dial must not be nil")
	}
	cfg = cfg.withDefaults()
	b := &Balancer[Req, Res]{
		dial:    dial,
		sem:     belfry.SemanticsOf(sem),
		cfg:     cfg,
		backoff: cfg.backoff(),
		random:  concurrent(cfg.Rand),
		fleet:   cfg.Load.Fleet(),
		began:   time.Now(),
		guard:   eject.New(cfg.Eject),
		members: map[string]*endpoint[Req, Res]{},
		shut:    make(chan struct{}),
	}
	b.timed = b.fleet.Timed()
	b.ring = newRing(cfg.Decisions, b.began)
	b.chooser, _ = b.fleet.(load.Chooser)
	b.ready.Store(&set[Req, Res]{})
	go b.discover(source)
	return b, nil
}

var (
	_ belfry.Service[int, int] = (*Balancer[int, int])(nil)
	_ belfry.Prompter          = (*Balancer[int, int])(nil)
)

// Acquire reserves room on the better of two endpoints, or on another if those have none, and waits while none has.
//
// When there is no endpoint left to wait for, or none was discovered within MaxWait, it fails with a
// [belfry.Rejection] around a [NoEndpointsError].
func (b *Balancer[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	var pause time.Duration
	if b.waiting.Load() == 0 {
		var permit belfry.Permit
		ok := false
		if b.ring == nil {
			permit, pause, ok = b.choose(nil, ctx, attempt.From(ctx))
		} else {
			permit, pause, ok = b.decide(ctx)
		}
		if ok {
			return permit, nil
		}
	}
	// What follows asks the context before it takes a lock.
	if err := ctx.Err(); err != nil {
		return belfry.Permit{}, b.refusal(err, pause)
	}
	return b.wait(ctx)
}

// Call sends req to the endpoint that permit is of.
func (b *Balancer[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	ep, inner := open[Req, Res](permit)
	if tried := attempt.From(ctx); tried != nil {
		tried.Add(&ep.Endpoint)
	}
	ep.Begin()
	decision := uint64(0)
	if b.ring != nil {
		decision = b.ring.take(&ep.decided, InFlight)
	}
	at, ok := permit.Stamped()
	if !ok {
		at = b.now()
	}
	mark := ep.load.Start(at)
	returned, extra := false, 0
	defer func() {
		if !returned { // it panicked, or ended its goroutine
			b.answered(ep, mark, belfry.Failure, nil)
			b.ring.end(decision, Failed)
			b.over(ep, belfry.Failure, extra)
		}
	}()
	if b.sem.Cost != nil {
		extra = b.burden(ep, req)
	}
	if b.chooser != nil {
		b.probe()
	}
	res, err := ep.svc.Call(ctx, inner, req)
	var out belfry.Outcome
	if err != nil || b.sem.Classify != nil {
		out = b.sem.Judge(res, err)
	}
	returned = true
	if out.Kind == belfry.Success {
		ep.load.End(b.now(), mark, load.Success)
	} else {
		b.answered(ep, mark, out.Kind, err)
	}
	if decision != 0 {
		b.ring.end(decision, endingOf(out.Kind))
	}
	if out.RetryAfter > 0 {
		b.leaveAlone(ep, out)
	}
	if err == nil && b.sem.Streams() {
		extra, kind := extra, out.Kind // never set again, and so not on the heap
		return b.sem.Finish(res, err, func() { b.over(ep, kind, extra) }), nil
	}
	b.over(ep, out.Kind, extra)
	return res, err
}

// Release gives permit back to the endpoint that it is of.
func (b *Balancer[Req, Res]) Release(permit belfry.Permit) {
	ep, inner := open[Req, Res](permit)
	b.ring.take(&ep.decided, Returned)
	b.release(ep, inner)
}

// Prompt says of b itself that a permit which is spent at once needs no second look at the clock.
func (b *Balancer[Req, Res]) Prompt(as any) bool { return as == any(b) }

// Close removes all endpoints and refuses all callers, those who wait too, with [belfry.ErrClosed]. It waits for the
// goroutines of the Balancer, which wait in dial and in the Acquire of endpoints under contexts that have ended, and closes the
// services that have no calls in flight, whose errors it returns. It waits neither for calls in flight, after which
// the remaining services are closed, nor for a source that has nothing to say; that is told to stop when it does.
// Closing again waits for the first.
func (b *Balancer[Req, Res]) Close() error {
	b.mu.Lock()
	again := b.closed
	b.closed = true
	eps := b.removeAll()
	b.failWaiters(errClosed)
	b.mu.Unlock()
	if again {
		<-b.shut
		return nil
	}
	defer close(b.shut)
	for _, ep := range eps {
		ep.cancel()
	}
	b.drivers.Wait()
	var errs []error
	for _, ep := range eps {
		if ep.load != nil {
			ep.load.Leave()
		}
		if ep.Retire() {
			errs = append(errs, b.bury(ep))
		}
	}
	return errors.Join(errs...)
}

// now is the time since b began, in microseconds, or 0 if nobody wants to know.
func (b *Balancer[Req, Res]) now() int64 {
	if !b.timed {
		return 0
	}
	return time.Since(b.began).Microseconds()
}
