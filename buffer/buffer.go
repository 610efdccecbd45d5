package buffer

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/places"
)

// A Service is a service behind a waiting room. The package documentation says what it does.
type Service[Req, Res any] struct {
	inner    belfry.Service[Req, Res]
	onAdmit  func(waited time.Duration)
	onReject func(err error)
	room     room
}

// New returns inner behind a room of bound seats, of which more than 536,870,911 are as good as so many. It panics with the error of [Validate] if there is one.
func New[Req, Res any](inner belfry.Service[Req, Res], bound int, cfg Config) *Service[Req, Res] {
	if err := Validate(bound, cfg); err != nil {
		panic(err)
	}
	s := &Service[Req, Res]{
		inner: inner, room: room{bound: bound, order: cfg.Order, maxWait: cfg.MaxWait},
		onAdmit: cfg.OnAdmit, onReject: cfg.OnReject,
	}
	s.room.free.Grow(min(bound, places.Most))
	s.room.codel.target, s.room.codel.interval = cfg.codel()
	return s
}

// Layer returns a layer that makes [New], each time with a room of its own. It panics as New does.
func Layer[Req, Res any](bound int, cfg Config) belfry.Layer[Req, Res] {
	if err := Validate(bound, cfg); err != nil {
		panic(err)
	}
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] {
		return New(inner, bound, cfg)
	}
}

var _ belfry.Service[int, int] = (*Service[int, int])(nil)

// Acquire takes a seat, waiting for one if the room is full. It fails with a [belfry.Rejection] if there is none in time.
func (s *Service[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	err := s.room.sit(ctx)
	if err != nil {
		s.refused(err)
	}
	return belfry.Permit{}, err
}

// Call waits on its seat until the inner service has a permit, and calls it. It fails with a [belfry.Rejection] if there is
// none in time.
func (s *Service[Req, Res]) Call(ctx context.Context, _ belfry.Permit, req Req) (Res, error) {
	var since time.Time
	if s.onAdmit != nil {
		since = time.Now()
	}
	permit, how, err := s.enter(ctx)
	if err != nil {
		if how != failed {
			s.refused(err)
		}
		var none Res
		return none, err
	}
	if s.onAdmit != nil {
		s.admitted(permit, since)
		return s.inner.Call(ctx, permit, req)
	}
	return s.inner.Call(ctx, belfry.Promptly(s.inner, permit), req)
}

// Release gives the seat back.
func (s *Service[Req, Res]) Release(belfry.Permit) { s.room.stand(released) }

// Close closes the room: everybody who waits in it or for a seat, and everybody who comes later, with a seat or
// without, is refused with [belfry.ErrClosed]. Calls that the inner service has begun go on; the inner service itself
// is not closed. Close may be called more than once, and its error is always nil.
func (s *Service[Req, Res]) Close() error {
	s.room.close("closed", belfry.ErrClosed)
	return nil
}

// Stats is what a room has counted, at one moment.
type Stats struct {
	// Bound is the number of seats.
	Bound int
	// Seated is the number of seats taken: by permits, and by calls in the room. One that is counted below may still be about to get up.
	Seated int
	// Queued is the number of calls in the room that wait for the inner service.
	Queued int
	// Waiting is the number of callers that wait for a seat.
	Waiting int
	// Admitted counts the calls that the inner service has had a permit for.
	Admitted uint64
	// Rejected counts those who found no seat and could not wait for one, hedges that would have had to queue, and those
	// that a closed room has refused.
	Rejected uint64
	// Cancelled counts those whose context ended while they waited, or before.
	Cancelled uint64
	// Expired counts those who had waited for too long, by MaxWait or CoDel.
	Expired uint64
	// Failed counts the calls for which an Acquire of the inner service has failed.
	Failed uint64
	// Closed says that the room is closed.
	Closed bool
}

// Stats returns what the room has counted.
func (s *Service[Req, Res]) Stats() Stats { return s.room.stats() }

// enter turns the caller's seat into a permit of the inner service. The seat is free afterwards, whatever happens.
func (s *Service[Req, Res]) enter(ctx context.Context) (permit belfry.Permit, how outcome, err error) {
	how = failed
	defer func() { s.room.stand(how) }()
	return s.admit(ctx)
}

// admitted tells that a call has permit, which goes back if that does not return.
func (s *Service[Req, Res]) admitted(permit belfry.Permit, since time.Time) {
	told := false
	defer func() {
		if !told {
			s.inner.Release(permit)
		}
	}()
	s.onAdmit(time.Since(since))
	told = true
}

// refused tells that a caller was turned away.
func (s *Service[Req, Res]) refused(err error) {
	if s.onReject != nil {
		s.onReject(err)
	}
}

// admit asks the inner service at once, unless that overtakes somebody in line; else it gets in line, unless it is a hedge.
func (s *Service[Req, Res]) admit(ctx context.Context) (permit belfry.Permit, how outcome, err error) {
	if ended := ctx.Err(); ended != nil {
		how, err = s.room.why(ended)
		return belfry.Permit{}, how, err
	}
	if !s.room.busy.Load() {
		permit, err = s.inner.Acquire(belfry.NoWait(ctx))
		switch {
		case err == nil:
			return permit, admitted, nil
		case !errors.Is(err, belfry.ErrNotReady):
			return belfry.Permit{}, failed, s.fail(err)
		case attempt.IsHedge(ctx):
			return belfry.Permit{}, rejected, err
		}
	}
	if attempt.IsHedge(ctx) {
		return belfry.Permit{}, rejected, s.room.unqueued()
	}
	return s.queue(ctx)
}

// queue waits for the turn, and then inside the inner Acquire. Only there a context of its own is needed.
func (s *Service[Req, Res]) queue(ctx context.Context) (permit belfry.Permit, how outcome, err error) {
	p, err := s.room.lineUp()
	if err != nil {
		return belfry.Permit{}, rejected, err
	}
	defer s.room.depart(&p)
	if how, err = s.room.await(ctx, &p); err != nil {
		return belfry.Permit{}, how, err
	}
	wait, cancel := within(ctx, p.until)
	defer cancel()
	if err := s.room.interruptible(cancel); err != nil {
		return belfry.Permit{}, rejected, err
	}
	permit, err = belfry.AcquireLate(wait, "buffer", s.inner)
	switch {
	case err == nil && ctx.Err() == nil:
		return permit, admitted, nil
	case err == nil: // for a caller that has left
		s.inner.Release(permit)
		how, err = s.room.why(ctx.Err())
	case wait.Err() != nil && !errors.Is(err, belfry.ErrClosed):
		how, err = s.room.why(ctx.Err())
	default:
		how, err = failed, s.fail(err)
	}
	return belfry.Permit{}, how, err
}

// within returns ctx bounded by end, unless that is endless.
func within(ctx context.Context, end ticket) (context.Context, context.CancelFunc) {
	if end == endless {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, end.left(clock()))
}

// fail returns the answer to a call for which the inner Acquire has failed with err.
func (s *Service[Req, Res]) fail(err error) error {
	if errors.Is(err, belfry.ErrClosed) {
		s.room.close("inner service closed", err)
	}
	return belfry.Refuse("buffer", err)
}
