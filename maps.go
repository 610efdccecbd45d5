package belfry

import "context"

// MapRequest returns inner for requests of another type: f turns them into inner's. f is called once a call,
// after room was reserved; if it panics, the room is given back.
func MapRequest[In, Req, Res any](inner Service[Req, Res], f func(In) Req) Service[In, Res] {
	return &mapRequest[In, Req, Res]{inner, f}
}

// MapResponse returns inner with f applied to its responses. f is called once a successful call. The response is f's from
// then on: where one must be ended, nobody else does so, should f not return it or panic.
func MapResponse[Req, Res, Out any](inner Service[Req, Res], f func(Res) Out) Service[Req, Out] {
	return &mapResult[Req, Res, Out]{inner, func(_ context.Context, res Res, err error) (Out, error) {
		if err != nil {
			var none Out
			return none, err
		}
		return f(res), nil
	}}
}

// MapError returns inner with f applied to its errors, those of Acquire and those of Call. f cannot change what an
// error says about sending: one that matched [ErrRejected], [ErrNotReady] or [ErrClosed] still does, and one that matched
// none of them still matches none. Where f returns nil the error stays as it was.
func MapError[Req, Res any](inner Service[Req, Res], f func(error) error) Service[Req, Res] {
	return &mapError[Req, Res]{inner, f}
}

// MapResult returns inner with f applied to what Call returned, error or not; it may turn either into the other, and the
// response is f's as in [MapResponse]. An error of a call that was sent does not match [ErrRejected], whatever f makes of
// it. f is not asked about errors of Acquire.
func MapResult[Req, Res, Out any](inner Service[Req, Res], f func(Res, error) (Out, error)) Service[Req, Out] {
	return &mapResult[Req, Res, Out]{inner, func(_ context.Context, res Res, err error) (Out, error) {
		return f(res, err)
	}}
}

// Then is [MapResult] for an f that may take its time: it has the call's context.
func Then[Req, Res, Out any](inner Service[Req, Res], f func(ctx context.Context, res Res, err error) (Out, error)) Service[Req, Out] {
	return &mapResult[Req, Res, Out]{inner, f}
}

// AndThen is [Then] for responses only: errors pass by f.
func AndThen[Req, Res, Out any](inner Service[Req, Res], f func(ctx context.Context, res Res) (Out, error)) Service[Req, Out] {
	return &mapResult[Req, Res, Out]{inner, func(ctx context.Context, res Res, err error) (Out, error) {
		if err != nil {
			var none Out
			return none, err
		}
		return f(ctx, res)
	}}
}

type mapRequest[In, Req, Res any] struct {
	inner Service[Req, Res]
	f     func(In) Req
}

func (m *mapRequest[In, Req, Res]) Acquire(ctx context.Context) (Permit, error) {
	return m.inner.Acquire(ctx)
}
func (m *mapRequest[In, Req, Res]) Release(permit Permit) { m.inner.Release(permit) }

func (m *mapRequest[In, Req, Res]) Call(ctx context.Context, permit Permit, in In) (Res, error) {
	return m.inner.Call(ctx, permit, m.convert(permit, in))
}

// convert applies f, and gives permit back should it not return.
func (m *mapRequest[In, Req, Res]) convert(permit Permit, in In) (req Req) {
	returned := false
	defer func() {
		if !returned {
			m.inner.Release(permit)
		}
	}()
	req = m.f(in)
	returned = true
	return req
}

type mapResult[Req, Res, Out any] struct {
	inner Service[Req, Res]
	f     func(context.Context, Res, error) (Out, error)
}

func (m *mapResult[Req, Res, Out]) Acquire(ctx context.Context) (Permit, error) {
	return m.inner.Acquire(ctx)
}
func (m *mapResult[Req, Res, Out]) Release(permit Permit) { m.inner.Release(permit) }

// Call lets no rejection out that f met on an errand of its own after this call was sent.
func (m *mapResult[Req, Res, Out]) Call(ctx context.Context, permit Permit, req Req) (Out, error) {
	res, err := m.inner.Call(ctx, permit, req)
	out, mapped := m.f(ctx, res, err)
	if mapped != nil && !isRejected(err) {
		mapped = Sent(mapped)
	}
	return out, mapped
}

type mapError[Req, Res any] struct {
	inner Service[Req, Res]
	f     func(error) error
}

func (m *mapError[Req, Res]) Acquire(ctx context.Context) (Permit, error) {
	permit, err := m.inner.Acquire(ctx)
	if err != nil {
		err = m.convert(err)
	}
	return permit, err
}
func (m *mapError[Req, Res]) Release(permit Permit) { m.inner.Release(permit) }

func (m *mapError[Req, Res]) Call(ctx context.Context, permit Permit, req Req) (Res, error) {
	res, err := m.inner.Call(ctx, permit, req)
	if err != nil {
		err = m.convert(err)
	}
	return res, err
}

func (m *mapError[Req, Res]) convert(err error) error {
	mapped := m.f(err)
	switch {
	case mapped == nil:
		return err
	case isRejected(err):
		return &renamed{err: mapped, was: err}
	default:
		return Sent(mapped)
	}
}

// A renamed error reads like err and is still the refusal that it was.
type renamed struct{ err, was error }

func (r *renamed) Error() string   { return r.err.Error() }
func (r *renamed) Unwrap() []error { return []error{r.err, r.was} }
