package balance

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/pick"
)

// noWait is the context under which endpoints are asked. It keeps nothing of the caller's.
var noWait = belfry.NoWait(context.Background())

// decide is choose, and keeps what it finds.
func (b *Balancer[Req, Res]) decide(ctx context.Context) (permit belfry.Permit, again time.Duration, ok bool) {
	tried := attempt.From(ctx)
	d := draft{now: b.now(), attempt: int32(1 + tried.Len())}
	permit, again, ok = b.choose(&d, ctx, tried)
	if ok {
		ep, _ := open[Req, Res](permit)
		b.ring.add(&d, &ep.decided)
	}
	return permit, again, ok
}

// choose asks endpoints for a permit, the better of two first, and writes what it looks at into d, unless that is nil. If all refuse it reports how
// long to wait before another try, as far as they say.
func (b *Balancer[Req, Res]) choose(d *draft, ctx context.Context, tried *attempt.Set) (permit belfry.Permit, again time.Duration, ok bool) {
	s, ask := b.ready.Load(), noWait
	if tried.Len() == 0 {
		tried = nil
	} else {
		ask = belfry.NoWait(ctx) // an endpoint may be a balancer too
	}
	if s.grouped != nil {
		return b.chooseInTurn(d, ctx, ask, s, tried, !b.guard.Quiet() && b.guard.Any(time.Now()))
	}
	if b.chooser != nil {
		if permit, ok := b.suggested(d, ask, s, tried); ok {
			return permit, 0, true
		}
	}
	if !b.guard.Quiet() {
		if at := time.Now(); b.guard.Any(at) {
			return b.chooseIn(d, ask, s, tried, at)
		}
	}
	now := b.now()
	first, second := b.better(now, s, tried)
	if d != nil {
		b.weighBoth(d, s, first, second)
	}
	if first == pick.None {
		return b.chooseAmongRest(d, ask, s, first, second, tried, eagerness{})
	}
	permit, err := b.ask(d, ask, s.eps[first])
	if err != nil {
		hurry := eagerness{}
		hurry.note(err)
		return b.chooseAmongRest(d, ask, s, first, second, tried, hurry)
	}
	if b.timed {
		permit = permit.Stamp(now)
	}
	return permit, 0, true
}

// better is [pick.Better], for most calls without a look at more than the first cache line of the two that are drawn.
func (b *Balancer[Req, Res]) better(now int64, s *set[Req, Res], tried *attempt.Set) (first, second int) {
	if tried != nil || len(s.eps) < 2 {
		return pick.Better(now, b.random, s.picks, tried)
	}
	first, second = pick.Two(b.random, len(s.eps))
	a, c := s.eps[first], s.eps[second]
	atA, atC := a.Work(), c.Work() // first, so that the processor fetches both at a time
	if a.load.Cost(now, atA) <= c.load.Cost(now, atC) {
		return first, second
	}
	return second, first
}

// chooseAmongRest asks the second that was drawn, and then all that were not.
func (b *Balancer[Req, Res]) chooseAmongRest(d *draft, ask context.Context, s *set[Req, Res], first, second int, tried *attempt.Set, hurry eagerness) (belfry.Permit, time.Duration, bool) {
	if second != pick.None {
		permit, err := b.ask(d, ask, s.eps[second])
		if err == nil {
			return permit, 0, true
		}
		hurry.note(err)
	}
	rest := pick.NewRest(b.now(), b.random, s.picks, first, second, tried)
	for i := rest.Next(); i != pick.None; i = rest.Next() {
		permit, err := b.ask(d, ask, s.eps[i])
		if err == nil {
			return permit, 0, true
		}
		hurry.note(err)
	}
	return belfry.Permit{}, hurry.pause, false
}

// ask asks one endpoint for a permit, under a context that does not let it wait.
func (b *Balancer[Req, Res]) ask(d *draft, ctx context.Context, ep *endpoint[Req, Res]) (belfry.Permit, error) {
	if d != nil {
		b.weigh(d, ep, 0)
	}
	granted := false
	defer func() {
		if !granted {
			d.answer(Refused)
			ep.Hint(false)
			b.drop(ep)
		}
	}()
	if !ep.Hold() {
		return belfry.Permit{}, belfry.ErrNotReady
	}
	inner, err := ep.svc.Acquire(ctx)
	if err != nil {
		b.refused(ep, err)
		return belfry.Permit{}, err
	}
	granted = true
	d.answer(Granted)
	if ep.IsAway() {
		b.returned(ep)
	}
	return ep.seal(inner), nil
}

// refused looks at why an endpoint that was not to wait gave no permit. That it has no room is usual; anything else
// is for its driver, which tries again after a pause.
func (b *Balancer[Req, Res]) refused(ep *endpoint[Req, Res], err error) {
	if r, ok := err.(*belfry.Rejection); ok && r.Err == belfry.ErrNotReady { //nolint:errorlint // the usual case, without a search
		return
	}
	switch {
	case errors.Is(err, belfry.ErrNotReady):
	case errors.Is(err, belfry.ErrClosed):
		b.lose(ep, err)
	case !ep.troubled.Load(): // its driver is not at it yet
		b.trouble(ep, err)
	}
}

// An eagerness is how long it takes until another try is worth it: as long as the shortest pause that was asked for, if every
// refusal asks for one.
type eagerness struct {
	pause   time.Duration
	unknown bool
}

func (e *eagerness) note(err error) {
	if !e.unknown {
		e.wait(belfry.RetryAfter(err))
	}
}

func (e *eagerness) wait(after time.Duration) {
	switch {
	case e.unknown:
	case after <= 0:
		*e = eagerness{unknown: true}
	case e.pause == 0 || after < e.pause:
		e.pause = after
	}
}
