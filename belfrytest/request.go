package belfrytest

import (
	"context"
	"sync/atomic"
)

// A Request is one that has arrived at a [Backend]. The test answers it once.
type Request[Req, Res any] struct {
	// Req is what was asked.
	Req Req

	b        *Backend[Req, Res]
	ctx      context.Context
	expected bool // guarded by the backend's mu
	taken    atomic.Bool
	decided  chan struct{} // closed once do is set
	do       func(context.Context, Req) (Res, error)
}

// Context returns the context that Call was given.
func (r *Request[Req, Res]) Context() context.Context { return r.ctx }

// Answer makes Call return res.
func (r *Request[Req, Res]) Answer(res Res) {
	r.b.t.Helper()
	r.Handle(func(context.Context, Req) (Res, error) { return res, nil })
}

// Fail makes Call return err, as it is.
func (r *Request[Req, Res]) Fail(err error) {
	r.b.t.Helper()
	r.Handle(func(context.Context, Req) (res Res, _ error) { return res, err })
}

// Handle makes Call return what f does, in the goroutine of Call: so f may panic, or overstay the end of ctx. It fails
// the test if the request has been answered, or if Call has returned because its context ended.
func (r *Request[Req, Res]) Handle(f func(ctx context.Context, req Req) (Res, error)) {
	r.b.t.Helper()
	switch {
	case r.decide(f):
	case r.ctx.Err() != nil:
		r.b.errorf("belfrytest: request %v is over: %v", r.Req, r.ctx.Err())
	default:
		r.b.errorf("belfrytest: request %v was answered twice", r.Req)
	}
}

// decide settles what becomes of the request, and reports whether it was open. With a nil f it is abandoned.
func (r *Request[Req, Res]) decide(f func(context.Context, Req) (Res, error)) bool {
	if r.taken.Swap(true) {
		return false
	}
	if f != nil {
		r.do = f
		close(r.decided)
	}
	return true
}
