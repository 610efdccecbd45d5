// Package shed refuses what would have to wait.
//
// A [Service] is ready exactly when its inner service is ready now: it always acquires under [belfry.NoWait], so a caller
// is admitted at once, or refused at once with the reason of the layer that was not ready. It goes by what that
// layer has counted, never by how goroutines happen to be scheduled, and holds nothing itself: a
// reservation that is not used counts, where it was made, until it is given back. Over a limit it refuses when no place is
// free; over a buffer, when no seat is. A caller whose context has ended already is refused with the context's
// error. There is nothing to cancel, for nothing waits.
package shed

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/belfry-go/belfry"
)

// Err is what the errors of requests match that were refused here: without this layer they would have waited. It implies
// [belfry.ErrNotReady], and errors.AsType finds in them the [belfry.Rejection] of the layer that was not ready, with
// its numbers. Errors that are no question of waiting, such as [belfry.ErrClosed], pass unchanged.
var Err error = notReady{}

// Config says who is told what a [Service] refuses. The zero Config tells nobody, at no cost.
type Config struct {
	// OnReject is told of each request that is refused here, with the error that its caller gets. It is called by the caller's
	// goroutine, so by several at once, with nothing held: it may use the Service, and must not wait for long. A panic in it
	// passes to the caller. Nil means nobody.
	OnReject func(err error)
}

// A Service admits a request at once, or refuses it at once.
type Service[Req, Res any] struct {
	inner  belfry.Service[Req, Res]
	cfg    Config
	prompt bool
	shed   atomic.Uint64
}

// New returns inner without its waits, with at most one Config. It adds no allocation to a call that is admitted.
func New[Req, Res any](inner belfry.Service[Req, Res], cfg ...Config) *Service[Req, Res] {
	s := &Service[Req, Res]{inner: inner, prompt: belfry.IsPrompt(inner)}
	if len(cfg) > 0 {
		s.cfg = cfg[0]
	}
	return s
}

// Layer returns a layer that makes [New].
func Layer[Req, Res any](cfg ...Config) belfry.Layer[Req, Res] {
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] { return New(inner, cfg...) }
}

var _ belfry.Service[int, int] = (*Service[int, int])(nil)

// Acquire acquires the inner service without waiting.
func (s *Service[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	if err := ctx.Err(); err != nil && !errors.Is(err, belfry.ErrNotReady) {
		return belfry.Permit{}, s.refused(&belfry.Rejection{Layer: "shed", Reason: "context done before the call", Err: err})
	}
	permit, err := s.inner.Acquire(belfry.NoWait(ctx))
	if err != nil && errors.Is(err, belfry.ErrNotReady) {
		s.shed.Add(1)
		err = s.refused(refuse(err))
	}
	return permit, err
}

// Call calls the inner service.
func (s *Service[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	return s.inner.Call(ctx, permit, req)
}

// Prompt reports whether the inner service is a [belfry.Prompter] that is.
func (s *Service[Req, Res]) Prompt(as any) bool { return s.prompt && as == any(s) }

// Release gives the inner service its permit back.
func (s *Service[Req, Res]) Release(permit belfry.Permit) { s.inner.Release(permit) }

// Stats is what a Service has counted.
type Stats struct {
	// Shed counts the requests that were refused because the inner service was not ready.
	Shed uint64
}

// Stats returns what the Service has counted.
func (s *Service[Req, Res]) Stats() Stats { return Stats{Shed: s.shed.Load()} }

// refused returns err after telling of it.
func (s *Service[Req, Res]) refused(err error) error {
	if s.cfg.OnReject != nil {
		s.cfg.OnReject(err)
	}
	return err
}

// refuse marks err as refused here. What says who was not ready stays the first Rejection in it.
func refuse(err error) error {
	if _, ok := errors.AsType[*belfry.Rejection](err); !ok {
		err = &belfry.Rejection{Layer: "inner service", Err: err}
	}
	return &refusal{err}
}

// notReady is the type of Err.
type notReady struct{}

func (notReady) Error() string { return "shed: not ready now" }
func (notReady) Unwrap() error { return belfry.ErrNotReady }

// A refusal is an error of the inner service that also matches Err.
type refusal struct{ err error }

func (r *refusal) Error() string        { return "shed: " + r.err.Error() }
func (r *refusal) Unwrap() error        { return r.err }
func (r *refusal) Is(target error) bool { return target == Err }
