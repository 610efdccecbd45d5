package limit

import (
	"context"

	"github.com/belfry-go/belfry"
)

// A RatePerKey is a service whose calls go at the rate of a [KeyedLimiter], each key at its own. It is late: the request
// tells the key, so Call takes a token and reserves the inner service, and Acquire always succeeds. It never queues: a call whose key
// has no token is refused at once with a [belfry.Rejection] of the layer "rate", whose RetryAfter says when the next
// one may go. If the inner service refuses, the token goes back. A context that is done sends nothing and takes nothing.
//
// A successful call of a key that is remembered costs no allocation, one of a new key those of a map's entry.
type RatePerKey[Req, Res any, K comparable] struct {
	inner   belfry.Service[Req, Res]
	limiter *KeyedLimiter[K]
	key     func(Req) K
}

// NewRatePerKey returns inner at the rate of limiter for each key, which key tells of a request; it may be called concurrently.
// Neither may be nil. Who makes keys of what clients say should keep them short, for they are remembered.
func NewRatePerKey[Req, Res any, K comparable](inner belfry.Service[Req, Res], limiter *KeyedLimiter[K], key func(Req) K) *RatePerKey[Req, Res, K] {
	switch {
	case limiter == nil:
		panic(errNoKeyedLimiter)
	case key == nil:
		panic(errNoKey)
	}
	return &RatePerKey[Req, Res, K]{inner, limiter, key}
}

// RatePerKeyLayer returns a layer that makes [NewRatePerKey], and panics as that does. All services that it wraps share limiter.
func RatePerKeyLayer[Req, Res any, K comparable](limiter *KeyedLimiter[K], key func(Req) K) belfry.Layer[Req, Res] {
	NewRatePerKey[Req, Res](nil, limiter, key)
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] {
		return NewRatePerKey(inner, limiter, key)
	}
}

var _ belfry.Service[int, int] = (*RatePerKey[int, int, string])(nil)

// Acquire reserves nothing.
func (r *RatePerKey[Req, Res, K]) Acquire(context.Context) (belfry.Permit, error) {
	return belfry.Permit{}, nil
}

// Call takes a token of the request's key, reserves the inner service and calls it.
func (r *RatePerKey[Req, Res, K]) Call(ctx context.Context, _ belfry.Permit, req Req) (Res, error) {
	permit, err := r.reserve(ctx, req)
	if err != nil {
		var none Res
		return none, err
	}
	return r.inner.Call(ctx, belfry.Promptly(r.inner, permit), req)
}

// Release has nothing to give back.
func (r *RatePerKey[Req, Res, K]) Release(belfry.Permit) {}

// Stats returns those of the KeyedLimiter, which other services may share.
func (r *RatePerKey[Req, Res, K]) Stats() KeyedStats { return r.limiter.Stats() }

// lateName is how an inner service's refusal without a name of its own is called. It was not by rate.
const lateName = "rate per key"

func (r *RatePerKey[Req, Res, K]) reserve(ctx context.Context, req Req) (belfry.Permit, error) {
	if err := ctx.Err(); err != nil {
		return belfry.Permit{}, &belfry.Rejection{Layer: lateName, Reason: "context done before the call", Err: err}
	}
	key := r.key(req)
	period, err := r.limiter.take(key, clock())
	if err != nil {
		if r.limiter.cfg.OnReject != nil {
			r.limiter.cfg.OnReject(err)
		}
		return belfry.Permit{}, err
	}
	granted := false
	defer func() {
		if !granted {
			r.limiter.refund(key, period)
		}
	}()
	permit, err := belfry.AcquireLate(ctx, lateName, r.inner)
	granted = err == nil
	return permit, err
}
