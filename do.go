package belfry

import (
	"context"

	"github.com/belfry-go/belfry/internal/attempt"
)

// Do sends req to svc: it waits for room as long as ctx allows, then calls. A ctx that is done sends nothing. What
// Acquire fails with comes back as a refusal (it matches [ErrRejected]); an error of a request that was sent does
// not. Do adds no allocation of its own.
func Do[Req, Res any](ctx context.Context, svc Service[Req, Res], req Req) (Res, error) {
	var none Res
	if err := ctx.Err(); err != nil {
		return none, doneBefore(err)
	}
	permit, err := svc.Acquire(ctx)
	if err != nil {
		return none, Refuse("acquire", err)
	}
	return svc.Call(ctx, Promptly(svc, permit), req)
}

// TryDo is [Do] without waiting for room: it acquires under [NoWait] and calls under ctx.
func TryDo[Req, Res any](ctx context.Context, svc Service[Req, Res], req Req) (Res, error) {
	permit, err := acquireAlive(ctx, NoWait(ctx), svc)
	if err != nil {
		var none Res
		return none, err
	}
	return svc.Call(ctx, Promptly(svc, permit), req)
}

// acquireAlive acquires under wait unless ctx, which the call is to have, is done already. Do has the same in its own lines, which saves a call.
func acquireAlive[Req, Res any](ctx, wait context.Context, svc Service[Req, Res]) (Permit, error) {
	if err := ctx.Err(); err != nil {
		return Permit{}, doneBefore(err)
	}
	permit, err := svc.Acquire(wait)
	if err != nil {
		return Permit{}, Refuse("acquire", err)
	}
	return permit, nil
}

// doneBefore is the refusal of a call whose context is done already.
func doneBefore(err error) error {
	return &Rejection{Layer: "do", Reason: "context done before the call", Err: err}
}

// AcquireLate is how a late layer reserves inner while it is in a Call, for the call that ctx belongs to: not at all
// once ctx is done, under [NoWait] if ctx belongs to an extra attempt of a hedge (those never queue), else as long
// as ctx allows. Its error matches [ErrRejected], on behalf of layer where inner did not say who refused; a layer that has
// sent an attempt before passes it through [Sent].
func AcquireLate[Req, Res any](ctx context.Context, layer string, inner Service[Req, Res]) (Permit, error) {
	if err := ctx.Err(); err != nil {
		return Permit{}, &Rejection{Layer: layer, Reason: "context done while waiting", Err: err}
	}
	wait := ctx
	if attempt.IsHedge(ctx) {
		wait = NoWait(ctx)
	}
	permit, err := inner.Acquire(wait)
	if err != nil {
		return Permit{}, Refuse(layer, err)
	}
	return permit, nil
}
