package balance

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/pick"
	"github.com/belfry-go/belfry/load"
)

// An endpoint is one of the servers, from the change that brought it until its last call is over. A key whose address changes
// gets a new one.
type endpoint[Req, Res any] struct {
	// Set once, under the balancer's mu, before the endpoint gets into the ready set. With what choosing looks at they are a cache line of 64
	// bytes: a call touches no other.
	svc  belfry.Service[Req, Res]
	load load.Endpoint
	// Endpoint is what choosing looks at. Every permit holds it, and so does whoever asks for one.
	pick.Endpoint

	guard *eject.Endpoint // its part of the guard rail

	troubled atomic.Bool // err is set; written under the balancer's mu
	broken   atomic.Bool // and is not that there is no room

	key, addr  string
	generation int             // of its address
	ctx        context.Context // of its driver
	cancel     context.CancelFunc
	kick       kick

	reports reports
	decided atomic.Uint64         // the newest decision for it whose permit is out; of the ring
	failure atomic.Pointer[error] // of the last call that failed

	// Guarded by the balancer's mu.
	phase  phase
	ready  bool                // it is in the ready set
	driven bool                // it has a driver
	seen   bool                // it has granted a permit
	failed int32               // times in a row, for the pause after the next
	err    error               // why it is not ready
	old    *endpoint[Req, Res] // serves until this one is ready
}

// A phase is where an endpoint is in its life.
type phase uint8

const (
	dialling   phase = iota // it has no service yet
	up                      // it has
	backingOff              // it failed, and its driver pauses; with or without a service
	lost                    // its service is closed for good
	removed                 // by the source, by a successor, or by Close
)

// gone reports whether ep will grant no more permits. The balancer's mu is held.
func (ep *endpoint[Req, Res]) gone() bool { return ep.phase == lost || ep.phase == removed }

// A set is the endpoints that have a service, in two parallel slices: what choosing looks at, and what is chosen.
type set[Req, Res any] struct {
	picks []*pick.Endpoint
	eps   []*endpoint[Req, Res]
	// grouped is nil as long as no endpoint has a weight, a priority or a zone that matters.
	grouped *grouping
}

// A held is a permit of an endpoint whose service granted one that remembers something.
type held[Req, Res any] struct {
	ep    *endpoint[Req, Res]
	inner belfry.Permit
}

// seal returns the permit for what the endpoint's service has granted. The endpoint itself will do if that is nothing
// to remember; being shared by all such permits it cannot tell a second use, as belfry.Reservation can.
func (ep *endpoint[Req, Res]) seal(inner belfry.Permit) belfry.Permit {
	if inner.Value() == nil {
		return belfry.NewPermit(ep)
	}
	return belfry.NewPermit(&held[Req, Res]{ep, inner})
}

// open is the reverse of seal.
func open[Req, Res any](permit belfry.Permit) (*endpoint[Req, Res], belfry.Permit) {
	switch v := permit.Value().(type) {
	case *endpoint[Req, Res]:
		return v, belfry.Permit{}
	case *held[Req, Res]:
		return v.ep, v.inner
	}
	panic("balance: the permit is not one of a Balancer")
}

// answered notes how a call came back.
func (b *Balancer[Req, Res]) answered(ep *endpoint[Req, Res], mark load.Mark, kind belfry.Kind, err error) {
	ep.load.End(b.now(), mark, load.Classify(kind, err))
	if kind == belfry.Failure && err != nil {
		failure := err // not err itself, which would then be on the heap for every call
		ep.failure.Store(&failure)
	}
}

// heaviest is the most work that one request is taken to be, so that no sum of many overflows.
const heaviest = 1 << 30

// burden notes how much work req is, and returns what over has to take away again.
func (b *Balancer[Req, Res]) burden(ep *endpoint[Req, Res], req Req) (extra int) {
	extra = min(b.sem.Work(req), heaviest) - 1
	ep.Burden(extra)
	return extra
}

// over ends a call that was extra work. Where one was, there is room for another.
func (b *Balancer[Req, Res]) over(ep *endpoint[Req, Res], kind belfry.Kind, extra int) {
	if extra != 0 {
		ep.Burden(-extra)
	}
	if !ep.Hinted() || b.waiting.Load() > 0 {
		b.freed(ep)
	}
	last := false
	switch kind {
	case belfry.Success:
		last = ep.Finish()
	case belfry.Failure:
		last = ep.Fail()
	default:
		last = ep.Ignore()
	}
	if last {
		go b.buryAlone(ep)
	}
}

// release gives a permit back to the endpoint's service.
func (b *Balancer[Req, Res]) release(ep *endpoint[Req, Res], inner belfry.Permit) {
	defer b.drop(ep)
	ep.svc.Release(inner)
	b.freed(ep)
}

// drop ends the holding of an endpoint without a call.
func (b *Balancer[Req, Res]) drop(ep *endpoint[Req, Res]) {
	if ep.Drop() {
		go b.buryAlone(ep)
	}
}

// freed notes that there is room.
func (b *Balancer[Req, Res]) freed(ep *endpoint[Req, Res]) {
	ep.Hint(true)
	if b.waiting.Load() > 0 {
		ep.kick.give()
	}
}

// bury ends the life of a removed endpoint that nobody holds any more.
func (b *Balancer[Req, Res]) bury(ep *endpoint[Req, Res]) error {
	b.mu.Lock()
	b.unlist(ep)
	svc := ep.svc
	b.mu.Unlock()
	if svc == nil {
		return nil
	}
	return b.shutDown(ep, svc)
}

// buryAlone is bury in a goroutine of its own, for callers that need not wait for a service to close.
func (b *Balancer[Req, Res]) buryAlone(ep *endpoint[Req, Res]) {
	_ = b.bury(ep) // the event says how it went
}

// shutDown closes the service of ep if it can be.
func (b *Balancer[Req, Res]) shutDown(ep *endpoint[Req, Res], svc belfry.Service[Req, Res]) error {
	closer, ok := svc.(io.Closer)
	if !ok {
		return nil
	}
	err := guard(closer.Close)
	b.emit(Event{Kind: ServiceClosed, Key: ep.key, Addr: ep.addr, Err: err})
	return err
}

// errExited is what becomes of dial and Acquire that end their goroutine.
var errExited = errors.New("balance: the goroutine was ended by runtime.Goexit")
