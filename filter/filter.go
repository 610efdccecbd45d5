// Package filter lets a function judge each request before a service is asked for room. It is late: a [Service] is always
// ready, which says nothing about the inner service; Call judges the request first and then reserves the inner service,
// waiting as long as its context allows.
//
// So a request that is rejected reserves nothing, at any depth, and while the function has not decided, nothing is
// reserved either. The function may take its time and ask elsewhere; it should return when its context ends. It may
// change the request, also its type.
//
// The extra attempt of a hedge is judged like any other, and does not queue behind the inner service. A context that ends
// while the function decides, or while the inner service is waited for, ends the call with a refusal; nothing was sent.
package filter

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/belfry-go/belfry"
)

// layer is the name in refusals.
const layer = "filter"

// Err is what the errors of requests match that the function has rejected. It implies [belfry.ErrRejected], for nothing was
// sent. Such an error matches whatever the function's error matches, and errors.AsType finds in it a
// [belfry.Rejection]: the function's own if it has returned one, so it may set a retry-after.
//
// A function that asks other services passes their errors through [belfry.Sent] where it matters that a refusal of theirs, such
// as [belfry.ErrClosed], is not taken for one of this service.
var Err error = rejected{}

// A Service is a service behind a function that judges its requests.
type Service[In, Req, Res any] struct {
	inner    belfry.Service[Req, Res]
	judge    func(ctx context.Context, req In) (Req, error)
	passed   atomic.Uint64
	rejected atomic.Uint64
}

// New returns inner for the requests that judge accepts: the request that it returns is sent on, and with an error nothing
// is. judge is called once a call, by several goroutines at once; a panic in it passes to the caller. New panics with the
// error of [Validate] if there is one. A call that passes costs no allocation beside those of judge.
func New[In, Req, Res any](inner belfry.Service[Req, Res], judge func(ctx context.Context, req In) (Req, error)) *Service[In, Req, Res] {
	if err := Validate(judge); err != nil {
		panic(err)
	}
	return &Service[In, Req, Res]{inner: inner, judge: judge}
}

// Layer returns a layer that makes [New], for a judge that keeps the type. It panics as New does.
func Layer[Req, Res any](judge func(ctx context.Context, req Req) (Req, error)) belfry.Layer[Req, Res] {
	if err := Validate(judge); err != nil {
		panic(err)
	}
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] { return New(inner, judge) }
}

// Validate says whether [New] takes judge, which must not be nil.
func Validate[In, Req any](judge func(ctx context.Context, req In) (Req, error)) error {
	if judge == nil {
		return errors.New("filter: judge must not be nil")
	}
	return nil
}

var _ belfry.Service[int, int] = (*Service[int, int, int])(nil)

// Acquire always succeeds, with the zero Permit.
func (s *Service[In, Req, Res]) Acquire(context.Context) (belfry.Permit, error) {
	return belfry.Permit{}, nil
}

// Call judges req, and if it is accepted reserves the inner service and calls it.
func (s *Service[In, Req, Res]) Call(ctx context.Context, _ belfry.Permit, req In) (Res, error) {
	var none Res
	if err := ctx.Err(); err != nil {
		return none, &belfry.Rejection{Layer: layer, Reason: "context done before the call", Err: err}
	}
	judged, err := s.judge(ctx, req)
	if err != nil {
		s.rejected.Add(1)
		return none, reject(err)
	}
	s.passed.Add(1)
	permit, err := belfry.AcquireLate(ctx, layer, s.inner)
	if err != nil {
		return none, err
	}
	return s.inner.Call(ctx, belfry.Promptly(s.inner, permit), judged)
}

// Release has nothing to give back.
func (s *Service[In, Req, Res]) Release(belfry.Permit) {}

// Stats is what a Service has counted.
type Stats struct {
	// Passed counts the requests that were accepted, whatever became of them in the inner service.
	Passed uint64
	// Rejected counts the requests that were not.
	Rejected uint64
}

// Stats returns what the Service has counted.
func (s *Service[In, Req, Res]) Stats() Stats {
	return Stats{Passed: s.passed.Load(), Rejected: s.rejected.Load()}
}

// reject marks err as the judgement on a request. A Rejection in it stays the first.
func reject(err error) error {
	if _, ok := errors.AsType[*belfry.Rejection](err); !ok {
		err = &belfry.Rejection{Layer: layer, Reason: "rejected", Err: err}
	}
	return &rejection{err}
}

// rejected is the type of Err.
type rejected struct{}

func (rejected) Error() string { return "filter: rejected" }
func (rejected) Unwrap() error { return belfry.ErrRejected }

// A rejection is an error of the function that also matches Err.
type rejection struct{ err error }

func (r *rejection) Error() string        { return r.err.Error() }
func (r *rejection) Unwrap() error        { return r.err }
func (r *rejection) Is(target error) bool { return target == Err || target == belfry.ErrRejected }
