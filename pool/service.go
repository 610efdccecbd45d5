package pool

import (
	"context"

	"github.com/belfry-go/belfry"
)

// A target is the service for one key.
type target[K comparable, Req, Res any] struct {
	pool *Pool[K, Req, Res]
	key  K
}

var _ belfry.Service[int, int] = target[string, int, int]{}

// A held is a permit of a service that granted one which remembers something.
type held[K comparable, Req, Res any] struct {
	entry *entry[K, Req, Res]
	inner belfry.Permit
}

// Acquire begins to use the key's service, and acquires it. Its permit costs an allocation if the service's own remembers something.
func (t target[K, Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	e, err := t.pool.use(ctx, t.key)
	if err != nil {
		return belfry.Permit{}, err
	}
	granted := false
	defer func() {
		if !granted {
			t.pool.leave(e)
		}
	}()
	inner, err := e.svc.Acquire(ctx)
	if err != nil {
		return belfry.Permit{}, err
	}
	granted = true
	if inner.Value() == nil {
		return belfry.NewPermit(e), nil
	}
	return belfry.NewPermit(&held[K, Req, Res]{e, inner}), nil
}

// Call calls the service that permit is of, also if it was evicted since.
func (t target[K, Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	e, inner := t.open(permit)
	return t.pool.call(ctx, e, inner, req)
}

// Release gives permit back to the service that it is of.
func (t target[K, Req, Res]) Release(permit belfry.Permit) {
	e, inner := t.open(permit)
	defer t.pool.leave(e)
	e.svc.Release(inner)
}

func (target[K, Req, Res]) open(permit belfry.Permit) (*entry[K, Req, Res], belfry.Permit) {
	switch v := permit.Value().(type) {
	case *entry[K, Req, Res]:
		return v, belfry.Permit{}
	case *held[K, Req, Res]:
		return v.entry, v.inner
	}
	panic("pool: the permit is not one of a Pool")
}

// A keyed takes the key from the request.
type keyed[K comparable, Req, Res any] struct {
	pool *Pool[K, Req, Res]
	key  func(Req) K
}

var _ belfry.Service[int, int] = (*keyed[string, int, int])(nil)

// Acquire always succeeds, with the zero Permit: what is ready depends on the request.
func (k *keyed[K, Req, Res]) Acquire(context.Context) (belfry.Permit, error) {
	return belfry.Permit{}, nil
}

// Call reserves the service for the key of req, and calls it.
func (k *keyed[K, Req, Res]) Call(ctx context.Context, _ belfry.Permit, req Req) (Res, error) {
	var none Res
	if err := ctx.Err(); err != nil {
		return none, &belfry.Rejection{Layer: layer, Reason: "context done before the call", Err: err}
	}
	e, err := k.pool.use(ctx, k.key(req))
	if err != nil {
		return none, err
	}
	granted := false
	defer func() {
		if !granted {
			k.pool.leave(e)
		}
	}()
	permit, err := belfry.AcquireLate(ctx, layer, e.svc)
	if err != nil {
		return none, err
	}
	granted = true // call ends the use
	return k.pool.call(ctx, e, permit, req)
}

// Release has nothing to give back.
func (k *keyed[K, Req, Res]) Release(belfry.Permit) {}
