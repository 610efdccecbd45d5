package belfry

import (
	"context"
	"errors"
	"fmt"
)

// ErrEmpty says that there is no service: an [Optional] without one, or a [Lazy] that came to nothing.
var ErrEmpty = errors.New("belfry: no service")

// Optional returns svc, or if it is nil a service that is not there: it refuses every Acquire with an error that matches
// [ErrClosed] and [ErrEmpty]. A nil pointer in a Service is not nil.
func Optional[Req, Res any](svc Service[Req, Res]) Service[Req, Res] {
	if svc == nil {
		return empty[Req, Res]{}
	}
	return svc
}

type empty[Req, Res any] struct{}

var errOptional error = &Rejection{Layer: "optional", Reason: "empty", Err: fmt.Errorf("%w: %w", ErrClosed, ErrEmpty)}

func (empty[Req, Res]) Acquire(context.Context) (Permit, error) { return Permit{}, errOptional }
func (empty[Req, Res]) Release(Permit)                          {}

// Call is out of reach: nobody has a permit.
func (empty[Req, Res]) Call(context.Context, Permit, Req) (res Res, err error) { return res, ErrSpent }
