package belfry

import (
	"context"
	"errors"
	"sync/atomic"
)

// Reserve waits for room in svc and holds it until the Reservation's Call or Release. Under [NoWait] it does not wait.
// On an error the Reservation is empty, and its methods are safe.
//
//	r, err := belfry.Reserve(ctx, svc)
//	if err != nil {
//		return err
//	}
//	defer r.Release()
//	res, err := r.Call(ctx, queue.Pop())
func Reserve[Req, Res any](ctx context.Context, svc Service[Req, Res]) (Reservation[Req, Res], error) {
	permit, err := svc.Acquire(ctx)
	if err != nil {
		return Reservation[Req, Res]{}, Refuse("acquire", err)
	}
	return Reservation[Req, Res]{svc: svc, permit: permit}, nil
}

// A Reservation is room for one call, held by a caller. It is used once, by Call or by Release, whichever
// comes first; what comes later cannot free or take anybody else's room. It must not be copied, which go vet
// notices. Its methods may be called concurrently.
type Reservation[Req, Res any] struct {
	svc    Service[Req, Res]
	permit Permit
	spent  atomic.Bool
}

// Call spends the room on req. It fails with [ErrSpent], and sends nothing, if the room has been spent or
// released.
func (r *Reservation[Req, Res]) Call(ctx context.Context, req Req) (Res, error) {
	if r.svc == nil || r.spent.Swap(true) {
		var none Res
		return none, ErrSpent
	}
	return r.svc.Call(ctx, r.permit, req)
}

// Release gives the room back if it is still held, and does nothing otherwise: defer r.Release() is always right.
func (r *Reservation[Req, Res]) Release() {
	if r.svc == nil || r.spent.Swap(true) {
		return
	}
	r.svc.Release(r.permit)
}

func isRejected(err error) bool { return err != nil && errors.Is(err, ErrRejected) }
