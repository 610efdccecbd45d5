package balance

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/pick"
)

// panicNow is noWait for endpoints that are asked although they are out.
var panicNow = eject.Panic(noWait)

// panics counts how picks ended for which the draw showed ejected endpoints only.
type panics struct{ ready, probing, failed atomic.Uint64 }

func (p *panics) count(g eject.Grade) {
	switch g {
	case eject.In:
		p.ready.Add(1)
	case eject.Probing:
		p.probing.Add(1)
	case eject.Out:
		p.failed.Add(1)
	}
}

// chooseIn is choose while endpoints are out: those are not asked, unless there is no other left to hope for.
func (b *Balancer[Req, Res]) chooseIn(d *draft, ask context.Context, s *set[Req, Res], tried *attempt.Set, at time.Time) (belfry.Permit, time.Duration, bool) {
	out := func(i int) bool {
		if s.eps[i].guard.Grade(at) != eject.Out {
			return false
		}
		s.eps[i].Away(true)
		return true
	}
	first, second, missed := pick.BetterIn(b.now(), b.random, s.picks, tried, out, pick.Effort)
	b.weighBoth(d, s, first, second)
	hurry := eagerness{}
	for _, i := range [...]int{first, second} {
		if i == pick.None {
			continue
		}
		permit, err := b.ask(d, ask, s.eps[i])
		if err == nil {
			return permit, 0, true
		}
		hurry.note(err)
	}
	rest := pick.NewRest(b.now(), b.random, s.picks, first, second, tried)
	for i := rest.Next(); i != pick.None; i = rest.Next() {
		if out(i) {
			hurry.wait(s.eps[i].guard.Until(at))
			continue
		}
		permit, err := b.ask(d, ask, s.eps[i])
		if err == nil {
			if missed {
				b.panics.count(eject.In)
			}
			return permit, 0, true
		}
		hurry.note(err)
	}
	if b.hope(s, at) {
		return belfry.Permit{}, hurry.pause, false
	}
	permit, ok := b.askAnyway(d, s, at)
	return permit, hurry.pause, ok
}

// leaveAlone ejects ep for as long as its answer asks for, within bounds. Rejections are not answers: they are for those who acquire.
func (b *Balancer[Req, Res]) leaveAlone(ep *endpoint[Req, Res], out belfry.Outcome) {
	if out.Kind != belfry.Failure || b.cfg.MaxRetryAfter < 0 {
		return
	}
	now := time.Now()
	ep.guard.Eject(now, eject.Overload, now.Add(min(out.RetryAfter, b.cfg.MaxRetryAfter)))
}

// returned notes that ep was asked again after it was out: it starts slowly.
func (b *Balancer[Req, Res]) returned(ep *endpoint[Req, Res]) {
	if ep.guard.Grade(time.Now()) != eject.Out && ep.Away(false) {
		ep.load.Back(b.now())
	}
}

// hope reports whether any endpoint is in that may have room some time.
func (b *Balancer[Req, Res]) hope(s *set[Req, Res], at time.Time) bool {
	return slices.ContainsFunc(s.eps, func(ep *endpoint[Req, Res]) bool {
		return ep.guard.Grade(at) == eject.In && !ep.broken.Load()
	})
}

// askAnyway asks those that are out: first those that are to be tried anyway, then those whose latest failure, or such a call, is the longest ago, so
// that not all calls go to one.
func (b *Balancer[Req, Res]) askAnyway(d *draft, s *set[Req, Res], at time.Time) (belfry.Permit, bool) {
	type candidate struct {
		ep     *endpoint[Req, Res]
		grade  eject.Grade
		failed int64
	}
	var all []candidate
	for _, ep := range s.eps {
		if g := ep.guard.Grade(at); g != eject.In {
			all = append(all, candidate{ep, g, ep.guard.Failed()})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.grade, b.grade), cmp.Compare(a.failed, b.failed))
	})
	d.found(ByPanic)
	for _, c := range all {
		if permit, err := b.ask(d, panicNow, c.ep); err == nil {
			c.ep.guard.Touch(at)
			b.panics.count(c.grade)
			return permit, true
		}
	}
	return belfry.Permit{}, false
}

// driving returns the context under which the driver of ep is to wait for it, or says that it is out for now.
func (b *Balancer[Req, Res]) driving(ep *endpoint[Req, Res]) (context.Context, error) {
	if b.guard.Quiet() {
		return ep.ctx, nil
	}
	at := time.Now()
	switch grade := ep.guard.Grade(at); {
	case grade == eject.In:
		return ep.ctx, nil
	case !b.hope(b.ready.Load(), at):
		return eject.Panic(ep.ctx), nil
	case grade == eject.Probing:
		return ep.ctx, nil
	}
	return nil, &belfry.Rejection{Layer: layer, Reason: "ejected", RetryAfter: ep.guard.Until(at), Err: belfry.ErrNotReady}
}
