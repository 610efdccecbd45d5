// Package breaker stops calling a service that fails, and tries it again, with one call at a time, after pauses that grow.
//
// A [Service] is closed at first, and lets calls through. It opens when so many in a row have failed, or when too large a share
// of those within a window has; which, and what a failure is, is for [Config] and the Semantics. After a pause it is half-open and
// lets one call through, the probe. If that succeeds, the breaker closes, and has forgotten all failures; if it fails, the breaker
// opens again for a longer pause. A pause is as long as the back-off has it, with jitter, or as long as the failures asked for by
// their retry-after, up to a bound.
//
// It is ready when its inner service is and the breaker lets calls through. While it does not, Acquire refuses, with the time
// until the next probe as retry-after, so that a caller turns elsewhere, and a balancer leaves the endpoint alone for as long. While
// a probe is out, no retry-after is known. With Config.Wait it waits instead: each probe goes to who came first; when the
// breaker closes, all who waited go on to the inner service, in any order. A caller that has waited for the inner service while
// the breaker opened is refused, or waits, when its turn comes.
//
// A permit is counted by when it is called. One that was acquired before the breaker opened may be called after, but what
// comes of it changes nothing; nor does a call that began before. A permit acquired half-open is the probe: nobody else is
// let through until it was called or released. A probe that says nothing about the service, because it was released, its call was
// ignored by the Semantics, or there was no room in the inner service, makes way for another at once, and one of which
// nothing is heard for Config.ProbeTimeout does too. A call that panics, or ends its goroutine, has failed.
//
// A call counts when Call returns, whatever becomes of a streamed response after that. Cancelling an Acquire gives up the place in
// line, or the probe. Cancelling a call ends its context, and the call when the inner service notices.
//
// Where it guards one of several endpoints, Config.Guard keeps too many breakers from being open at a time (package eject). A
// caller with nobody else to ask ([eject.Panic]) is let through whatever the state, and what comes of its call changes nothing.
//
// It belongs around one endpoint: several behind one breaker suffer for each other. A successful call costs no allocation; a
// probe costs one.
//
// The three states are those of Michael Nygard's "Release It!" (2007). That a window should count exactly, and not by weights that
// fade, is linkerd's reasoning: an average over time can hide a short outage of everything. That a probe of which nothing comes must
// not keep the breaker half-open for ever was learned by Twitter's Finagle.
package breaker

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/eject"
)

// A Service is a service behind a breaker. The package documentation says what it does.
type Service[Req, Res any] struct {
	inner belfry.Service[Req, Res]
	sem   belfry.Semantics[Req, Res]
	core  *core
}

// New returns inner behind a breaker of its own. sem says which calls fail; without it, those that return an error, unless it
// is a rejection or their caller has left. New panics with the error of cfg.Validate if there is one.
func New[Req, Res any](inner belfry.Service[Req, Res], cfg Config, sem ...belfry.Semantics[Req, Res]) *Service[Req, Res] {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &Service[Req, Res]{inner, belfry.SemanticsOf(sem), newCore(cfg)}
}

// Layer returns a layer that makes [New]: each service that it wraps gets a breaker of its own.
func Layer[Req, Res any](cfg Config, sem ...belfry.Semantics[Req, Res]) belfry.Layer[Req, Res] {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] { return New(inner, cfg, sem...) }
}

var (
	_ belfry.Service[int, int] = (*Service[int, int])(nil)
	_ io.Closer                = (*Service[int, int])(nil)
)

// A probe is the permit of one. Only it is wrapped; while the breaker is closed, permits are the inner service's, which may be
// a breaker too: hence of.
type probe struct {
	of     *core
	ticket ticket
	inner  belfry.Permit
}

// Acquire acquires the inner service, unless the breaker is open: then it refuses with a [belfry.Rejection], or waits.
func (s *Service[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	if s.core.closed() || eject.InPanic(ctx) {
		permit, err := s.inner.Acquire(ctx)
		if err != nil || s.core.closed() || eject.InPanic(ctx) {
			return permit, err
		}
		s.inner.Release(permit)
	}
	for {
		t, err := s.core.enter(ctx)
		if err != nil {
			return belfry.Permit{}, err
		}
		if permit, held, err := s.acquire(ctx, t); held || err != nil {
			return permit, err
		}
	}
}

// acquire acquires the inner service on a ticket, and reports false if that was worth nothing any more when it had.
func (s *Service[Req, Res]) acquire(ctx context.Context, t ticket) (permit belfry.Permit, held bool, err error) {
	defer func() {
		if !held {
			s.core.giveBack(t)
		}
	}()
	inner, err := s.inner.Acquire(ctx)
	if err != nil {
		return belfry.Permit{}, false, err
	}
	if held = s.core.holds(t); !held {
		s.inner.Release(inner)
		return belfry.Permit{}, false, nil
	}
	if t == 0 {
		return inner, true, nil
	}
	return belfry.NewPermit(&probe{s.core, t, inner}), true, nil
}

var (
	failure    = belfry.Outcome{Kind: belfry.Failure}
	errUnwound = errors.New("the call panicked, or ended its goroutine")
)

// Call calls the inner service, whether or not the breaker has opened since permit was acquired.
func (s *Service[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	if p := s.probe(permit); p != nil {
		return s.callProbe(ctx, p, req)
	}
	turn := s.core.turn.Load()
	returned := false
	defer func() {
		if !returned {
			s.core.ended(turn, failure, errUnwound)
		}
	}()
	res, err := s.inner.Call(ctx, permit, req)
	out := s.sem.Judge(res, err)
	returned = true
	s.core.ended(turn, out, err)
	return res, err
}

func (s *Service[Req, Res]) callProbe(ctx context.Context, p *probe, req Req) (Res, error) {
	returned := false
	defer func() {
		if !returned {
			s.core.probed(p.ticket, failure, errUnwound)
		}
	}()
	res, err := s.inner.Call(ctx, p.inner, req)
	out := s.sem.Judge(res, err)
	returned = true
	s.core.probed(p.ticket, out, err)
	return res, err
}

// Release gives the inner service its permit back. If it was the probe's, another may go.
func (s *Service[Req, Res]) Release(permit belfry.Permit) {
	p := s.probe(permit)
	if p == nil {
		s.inner.Release(permit)
		return
	}
	defer s.core.giveBack(p.ticket)
	s.inner.Release(p.inner)
}

// probe returns the probe that permit is of, nil if it is the inner service's own.
func (s *Service[Req, Res]) probe(permit belfry.Permit) *probe {
	if p, ok := permit.Value().(*probe); ok && p.of == s.core {
		return p
	}
	return nil
}

// Trip opens the breaker, as so many failures would, for d at least: to take an endpoint out by hand. 0 means a usual pause.
func (s *Service[Req, Res]) Trip(d time.Duration) { s.core.trip(d) }

// Reset closes the breaker, and forgets all failures. Those who wait are let through.
func (s *Service[Req, Res]) Reset() { s.core.reset() }

// Close closes the inner service, if that has a method Close() error, because whoever closes an endpoint sees its outermost
// layer only. The breaker itself has nothing to close.
func (s *Service[Req, Res]) Close() error {
	if c, ok := s.inner.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// A Change is what a breaker did.
type Change struct {
	// From and To are the state before and after.
	From, To State
	// At is when.
	At time.Time
	// NextProbe is when a probe may go, if To is Open.
	NextProbe time.Time
	// Err is that of the latest failure, nil if it had none, as a response with a bad status has none.
	Err error
}

// Stats is what there is to know about a breaker.
type Stats struct {
	// State is what it does with calls, since Since.
	State State
	Since time.Time
	// NextProbe is when a probe may go, which may be past: then one goes when somebody comes. While one is out, it is when that is
	// given up. Zero while the breaker is closed.
	NextProbe time.Time
	// LastError is that of the latest failure that counted, nil if it had none, as a response with a bad status has none. Reset
	// forgets it.
	LastError error
	// Consecutive is the number of failures in a row. RecentCalls and RecentFailures are those within the window, if there is a
	// ratio. All three begin anew with each change.
	Consecutive, RecentCalls, RecentFailures int
	// Waiting is the number of callers in line for a probe, or for the breaker to close.
	Waiting int
	// Failures counts the calls that failed, and counted.
	Failures uint64
	// Opened counts how often the breaker did.
	Opened uint64
	// Spared counts the failures that would have opened it if not too many endpoints were out already.
	Spared uint64
	// Probes counts those that were let through.
	Probes uint64
	// Refused counts the calls of Acquire that were not let through.
	Refused uint64
}

// Stats returns what there is to know now.
func (s *Service[Req, Res]) Stats() Stats { return s.core.stats() }
