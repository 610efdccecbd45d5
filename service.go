package belfry

import "context"

// A Service answers requests, and says beforehand whether it can. The package documentation has the rules.
//
// Users of a service write [Do]; the three methods are for layers.
type Service[Req, Res any] interface {
	// Acquire reserves room for one call, waiting for it as long as ctx allows; under [NoWait] it does not wait.
	// Whoever gets a permit uses it for exactly one Call or one Release. An error says why there is no room now;
	// only [ErrClosed] is final. After an error nothing is reserved.
	Acquire(ctx context.Context) (Permit, error)

	// Call spends permit on req, whatever happens: an error, a panic, a cancelled ctx. It returns when the call is
	// over, also after ctx has ended.
	Call(ctx context.Context, permit Permit, req Req) (Res, error)

	// Release gives permit back unspent. It does not wait.
	Release(permit Permit)
}

// A Permit is what a service has to remember between Acquire and Call. It belongs to the service that granted it
// and means nothing to another. The zero Permit remembers nothing.
type Permit struct {
	v     any
	stamp int64 // of Stamp: 0 is none, below 0 one that nobody has vouched for, above 0 one that Promptly has
}

// NewPermit returns a permit that remembers v. It allocates only if the conversion of v to an interface does: a
// pointer is free.
func NewPermit(v any) Permit { return Permit{v: v} }

// Value returns what the permit remembers, nil for the zero Permit.
func (p Permit) Value() any { return p.v }

// A Layer wraps a service in another of the same type.
type Layer[Req, Res any] func(inner Service[Req, Res]) Service[Req, Res]

// Func is a function as a [Service] that is always ready. It is a border: an error of the function that matches
// [ErrRejected] stems from a service that the function used, and does not match it any more when it comes out (see
// [Sent]). [Of] makes one without writing the types.
type Func[Req, Res any] func(ctx context.Context, req Req) (Res, error)

var _ Service[int, int] = Func[int, int](nil)

// Of returns f as a service; the types are inferred.
func Of[Req, Res any](f func(ctx context.Context, req Req) (Res, error)) Service[Req, Res] {
	return Func[Req, Res](f)
}

// Acquire always succeeds, with the zero Permit.
func (f Func[Req, Res]) Acquire(context.Context) (Permit, error) { return Permit{}, nil }

// Call returns what the function returns.
func (f Func[Req, Res]) Call(ctx context.Context, _ Permit, req Req) (Res, error) {
	res, err := f(ctx, req)
	if err != nil {
		err = Sent(err)
	}
	return res, err
}

// Release has nothing to give back.
func (f Func[Req, Res]) Release(Permit) {}
