package belfry

import (
	"context"
	"sync/atomic"
)

// Around returns a layer that only looks at requests and responses, as a service over inner: f is called for
// each request and sends it on with next. A permit never shows. f may change the request and the response, answer
// without sending, or fail. If next was not used when f has ended, however it ended, the room is given back. A response
// that next has returned is f's: where one must be ended, nobody else does so, should f not return it or panic.
//
// It costs one allocation a call, the [Next]. An error that f returns without having sent anything is passed on as
// it is; after sending it no longer matches [ErrRejected].
func Around[Req, Res any](inner Service[Req, Res], f func(ctx context.Context, req Req, next *Next[Req, Res]) (Res, error)) Service[Req, Res] {
	return &around[Req, Res]{inner, f}
}

// A Next sends one request to the inner service, on room that is reserved already. It is good for one Call, until the
// function that it was given to returns.
type Next[Req, Res any] struct {
	inner  Service[Req, Res]
	permit Permit
	used   atomic.Bool
	sent   atomic.Bool
}

// Call sends req. A second Call, or one after the function has returned, fails with [ErrSpent] and sends nothing.
func (n *Next[Req, Res]) Call(ctx context.Context, req Req) (Res, error) {
	if n.used.Swap(true) {
		var none Res
		return none, ErrSpent
	}
	n.sent.Store(true) // until it is known to be otherwise: f may end before this does
	res, err := n.inner.Call(ctx, n.permit, req)
	if isRejected(err) {
		n.sent.Store(false)
	}
	return res, err
}

func (n *Next[Req, Res]) release() {
	if !n.used.Swap(true) {
		n.inner.Release(n.permit)
	}
}

type around[Req, Res any] struct {
	inner Service[Req, Res]
	f     func(context.Context, Req, *Next[Req, Res]) (Res, error)
}

func (a *around[Req, Res]) Acquire(ctx context.Context) (Permit, error) { return a.inner.Acquire(ctx) }
func (a *around[Req, Res]) Release(permit Permit)                       { a.inner.Release(permit) }

func (a *around[Req, Res]) Call(ctx context.Context, permit Permit, req Req) (Res, error) {
	next := &Next[Req, Res]{inner: a.inner, permit: permit}
	defer next.release()
	res, err := a.f(ctx, req, next)
	if err != nil && next.sent.Load() {
		err = Sent(err)
	}
	return res, err
}
