package limit

import (
	"context"

	"github.com/belfry-go/belfry"
)

// A Rate is a service that reservations of are made at the rate of a RateLimiter. The package documentation says what it
// does. A successful call costs no allocation; a wait costs two, and one more of the first in line.
type Rate[Req, Res any] struct {
	inner   belfry.Service[Req, Res]
	limiter *RateLimiter
	prompt  bool
}

// NewRate returns inner at the rate of limiter, which must not be nil.
func NewRate[Req, Res any](inner belfry.Service[Req, Res], limiter *RateLimiter) *Rate[Req, Res] {
	if limiter == nil {
		panic(errNoRateLimiter)
	}
	return &Rate[Req, Res]{inner, limiter, belfry.IsPrompt(inner)}
}

// RateLayer returns a layer that makes [NewRate]. All services that it wraps share limiter, which must not be nil.
func RateLayer[Req, Res any](limiter *RateLimiter) belfry.Layer[Req, Res] {
	if limiter == nil {
		panic(errNoRateLimiter)
	}
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] { return NewRate(inner, limiter) }
}

var _ belfry.Service[int, int] = (*Rate[int, int])(nil)

// Acquire takes a token, then acquires the inner service, and gives the token back if that fails. It fails with a
// [belfry.Rejection] if no token is due in time, which says when the next call may go, else as the inner service does.
func (r *Rate[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	period, waited, err := r.limiter.acquire(ctx)
	if err != nil {
		if r.limiter.onReject != nil {
			r.limiter.onReject(err)
		}
		return belfry.Permit{}, err
	}
	granted := false
	defer func() {
		if !granted {
			r.limiter.refund(period)
		}
	}()
	if r.limiter.onAdmit != nil {
		r.limiter.onAdmit(waited)
	}
	permit, err := r.inner.Acquire(ctx)
	granted = err == nil
	return permit, err
}

// Call calls the inner service.
func (r *Rate[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	return r.inner.Call(ctx, permit, req)
}

// Prompt reports whether the inner service is a [belfry.Prompter] that is.
func (r *Rate[Req, Res]) Prompt(as any) bool { return r.prompt && as == any(r) }

// Release gives the token back, up to a burst of them in the time that a burst takes to come, after the inner service has
// its permit back.
func (r *Rate[Req, Res]) Release(permit belfry.Permit) {
	defer r.limiter.release()
	r.inner.Release(permit)
}

// Stats returns those of the RateLimiter, which other services may share.
func (r *Rate[Req, Res]) Stats() RateStats { return r.limiter.Stats() }
