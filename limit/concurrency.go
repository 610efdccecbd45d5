package limit

import (
	"context"

	"github.com/belfry-go/belfry"
)

// A Concurrency is a service whose calls in flight are bounded by a Limiter. The package documentation says what it does.
// A successful call costs no allocation; a wait costs two.
type Concurrency[Req, Res any] struct {
	inner   belfry.Service[Req, Res]
	limiter *Limiter
	sem     belfry.Semantics[Req, Res]
	end     func() // of limiter, made once: every streamed call needs it
	prompt  bool
}

// NewConcurrency returns inner with its calls in flight bounded by limiter, which must not be nil. Without sem, a call is
// over when Call returns.
func NewConcurrency[Req, Res any](inner belfry.Service[Req, Res], limiter *Limiter, sem ...belfry.Semantics[Req, Res]) *Concurrency[Req, Res] {
	if limiter == nil {
		panic(errNoLimiter)
	}
	return &Concurrency[Req, Res]{inner, limiter, belfry.SemanticsOf(sem), limiter.end, belfry.IsPrompt(inner)}
}

// ConcurrencyLayer returns a layer that makes [NewConcurrency]. All services that it wraps share limiter, which must not be
// nil.
func ConcurrencyLayer[Req, Res any](limiter *Limiter, sem ...belfry.Semantics[Req, Res]) belfry.Layer[Req, Res] {
	if limiter == nil {
		panic(errNoLimiter)
	}
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] {
		return NewConcurrency(inner, limiter, sem...)
	}
}

var _ belfry.Service[int, int] = (*Concurrency[int, int])(nil)

// Acquire takes a place, then acquires the inner service. It fails with a [belfry.Rejection] if there is no place in
// time, else as the inner service does.
func (c *Concurrency[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	waited, err := c.limiter.acquire(ctx)
	if err != nil {
		c.limiter.refused(err)
		return belfry.Permit{}, err
	}
	granted := false
	defer func() {
		if !granted {
			c.limiter.release()
		}
	}()
	c.limiter.admitted(waited)
	permit, err := c.inner.Acquire(ctx)
	granted = err == nil
	return permit, err
}

// Call calls the inner service. The place is free again when the call is over.
func (c *Concurrency[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	c.limiter.begin()
	if !c.sem.Streams() {
		defer c.limiter.end()
		return c.inner.Call(ctx, permit, req)
	}
	returned := false
	defer func() {
		if !returned {
			c.limiter.end()
		}
	}()
	res, err := c.inner.Call(ctx, permit, req)
	returned = true
	return c.sem.Finish(res, err, c.end), err
}

// Prompt reports whether the inner service is a [belfry.Prompter] that is.
func (c *Concurrency[Req, Res]) Prompt(as any) bool { return c.prompt && as == any(c) }

// Release gives the place back after the inner service has its permit back.
func (c *Concurrency[Req, Res]) Release(permit belfry.Permit) {
	defer c.limiter.release()
	c.inner.Release(permit)
}

// Stats returns those of the Limiter, which other services may share.
func (c *Concurrency[Req, Res]) Stats() Stats { return c.limiter.Stats() }
