package limit

import (
	"context"
	"errors"

	"github.com/belfry-go/belfry"
)

// An Adaptive is a service whose calls in flight are bounded by an [AdaptiveLimiter]: a [Concurrency] that finds its own limit. The
// package documentation says how. A successful call costs no allocation; a wait costs two.
type Adaptive[Req, Res any] struct {
	*Concurrency[Req, Res]

	limiter *AdaptiveLimiter
}

// NewAdaptive returns inner with its calls in flight bounded by limiter, which must not be nil. Without sem, a call is over
// when Call returns, and every error but a refusal or the caller's leaving is a failure.
func NewAdaptive[Req, Res any](inner belfry.Service[Req, Res], limiter *AdaptiveLimiter, sem ...belfry.Semantics[Req, Res]) *Adaptive[Req, Res] {
	if limiter == nil {
		panic(errNoAdaptiveLimiter)
	}
	watched := &measured[Req, Res]{inner, limiter, belfry.SemanticsOf(sem)}
	return &Adaptive[Req, Res]{NewConcurrency[Req, Res](watched, limiter.places, sem...), limiter}
}

// AdaptiveLayer returns a layer that makes [NewAdaptive]. All services that it wraps share limiter, which must not be nil.
func AdaptiveLayer[Req, Res any](limiter *AdaptiveLimiter, sem ...belfry.Semantics[Req, Res]) belfry.Layer[Req, Res] {
	if limiter == nil {
		panic(errNoAdaptiveLimiter)
	}
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] {
		return NewAdaptive(inner, limiter, sem...)
	}
}

var _ belfry.Service[int, int] = (*Adaptive[int, int])(nil)

// Prompt reports whether the inner service is a [belfry.Prompter] that is.
func (a *Adaptive[Req, Res]) Prompt(as any) bool { return a.prompt && as == any(a) }

// Stats returns those of the AdaptiveLimiter, which other services may share.
func (a *Adaptive[Req, Res]) Stats() AdaptiveStats { return a.limiter.Stats() }

// A measured tells its limiter how long calls took, while they have their places.
type measured[Req, Res any] struct {
	inner   belfry.Service[Req, Res]
	limiter *AdaptiveLimiter
	sem     belfry.Semantics[Req, Res]
}

func (m *measured[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	return m.inner.Acquire(ctx)
}

func (m *measured[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	start := clock()
	res, err := m.inner.Call(ctx, permit, req)
	took := clock() - start
	if err == nil || !errors.Is(err, belfry.ErrRejected) { // else nobody was asked
		m.limiter.learn(took, m.sem.Judge(res, err).Kind)
	}
	return res, err
}

func (m *measured[Req, Res]) Prompt(any) bool { return belfry.IsPrompt(m.inner) }

func (m *measured[Req, Res]) Release(permit belfry.Permit) { m.inner.Release(permit) }
