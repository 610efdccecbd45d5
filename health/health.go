// Package health asks an endpoint again and again whether it is well, and refuses calls while it is not.
//
// A [Service] is ready when its inner service is and the endpoint is healthy. It does not wait for the latter: Acquire
// refuses, as an open breaker does, with what the probe complained of and the time until the next probe, so that a
// caller turns elsewhere, and a balancer leaves the endpoint alone for as long. A caller that has waited for the inner service
// while the endpoint became unhealthy is refused when its turn comes. Calls in flight are left alone, and
// calls have no effect on probes: what they say about an endpoint is for a breaker.
//
// A state changes after so many results in a row that contradict it, so one lost packet changes nothing. While there is doubt,
// probes come at a shorter interval: at the start, after a result that contradicts the state, and after a change
// until twice as many results in a row as it took agree. The first probe comes after a random part of the shorter
// interval, and chance shortens all pauses, so that a fleet of callers that learns of an endpoint at the same moment does not
// probe it at the same moments. The thresholds and the two intervals are those of HAProxy (rise, fall, inter and fastinter).
//
// Where it checks one of several endpoints, Config.Guard keeps too many from being out at a time (package eject): then calls are let
// through to one that is unhealthy. So they are for a caller with nobody else to ask ([eject.Panic]).
//
// It belongs around one endpoint, outside its other layers, because a balancer closes the outermost only. [Service.Close]
// ends the probes.
package health

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
)

// A Service is an endpoint that is probed.
type Service[Req, Res any] struct {
	inner   belfry.Service[Req, Res]
	checks  *checker
	refused atomic.Uint64
}

// New returns inner, which it probes in a goroutine of its own until [Service.Close]. An endpoint is well when probe returns nil.
// There is one probe at a time, whose ctx ends after Config.Timeout. One that runs on all the same is a failure then, and
// again each time the next would be due: no other is started meanwhile. A panic in probe is a failure too, with a
// [PanicError]. An error that matches [belfry.ErrNotReady] is no result at all: there was no room for the probe. New
// panics if [Validate] fails.
func New[Req, Res any](inner belfry.Service[Req, Res], probe func(ctx context.Context) error, cfg Config) *Service[Req, Res] {
	if err := Validate(probe, cfg); err != nil {
		panic(err)
	}
	return &Service[Req, Res]{inner: inner, checks: check(probe, cfg.withDefaults())}
}

// Layer returns a layer that makes [New]. As each service has to be probed on its own, probe is given the one that is wrapped,
// and may send it a request, by [belfry.TryDo]: while an endpoint is full, a probe is no result, where one that waited for room
// would make the busy endpoint unhealthy.
func Layer[Req, Res any](probe func(ctx context.Context, inner belfry.Service[Req, Res]) error, cfg Config) belfry.Layer[Req, Res] {
	if probe == nil {
		panic(errNoProbe)
	}
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] {
		return New(inner, func(ctx context.Context) error { return probe(ctx, inner) }, cfg)
	}
}

var (
	_ belfry.Service[int, int] = (*Service[int, int])(nil)
	_ io.Closer                = (*Service[int, int])(nil)
)

// Acquire acquires the inner service if the endpoint is healthy, before and after. It adds no allocation unless it refuses.
func (s *Service[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	if !s.checks.admits(ctx) {
		return belfry.Permit{}, s.refuse()
	}
	permit, err := s.inner.Acquire(ctx)
	if err == nil && !s.checks.admits(ctx) {
		s.inner.Release(permit)
		return belfry.Permit{}, s.refuse()
	}
	return permit, err
}

// Call calls the inner service, whether or not the endpoint is still healthy.
func (s *Service[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	return s.inner.Call(ctx, permit, req)
}

// Release gives the inner service its permit back.
func (s *Service[Req, Res]) Release(permit belfry.Permit) { s.inner.Release(permit) }

// Close ends the probes, and makes Acquire fail with [belfry.ErrClosed]; calls that have a permit go on. Then it closes the
// inner service, if that has a method Close() error, because whoever closes an endpoint sees its outermost layer only.
//
// It waits for the goroutine and for a probe that is running, whose context it ends; for a probe that does not
// return no longer than Config.Timeout. It does not wait for OnChange, which so may call it. Closing again waits for the
// first.
func (s *Service[Req, Res]) Close() error {
	if !s.checks.close() {
		return nil
	}
	if c, ok := s.inner.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Stats is what there is to know about an endpoint's health.
type Stats struct {
	// Healthy says that probes succeed, so that calls are let through.
	Healthy bool
	// Since is when that began.
	Since time.Time
	// LastError is that of the latest probe that has failed, nil if the endpoint is healthy and the latest has not.
	LastError error
	// Probes counts those that have ended, or were given up.
	Probes uint64
	// Failures counts those of them that have failed.
	Failures uint64
	// Refused counts the calls of Acquire that were refused because of the endpoint's health.
	Refused uint64
	// Spared counts the failed probes after which the endpoint had to stay in, because too many were out already.
	Spared uint64
}

// Stats returns what there is to know now.
func (s *Service[Req, Res]) Stats() Stats {
	stats := s.checks.stats()
	stats.Refused = s.refused.Load()
	return stats
}

func (s *Service[Req, Res]) refuse() error {
	err := s.checks.refusal()
	s.refused.Add(1)
	return err
}
