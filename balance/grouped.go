package balance

import (
	"context"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/pick"
)

// A grouping is a set by priority, zone and weight. It is made for the first call that needs it, so that a thousand endpoints that come one
// by one are not put in order a thousand times.
type grouping struct {
	set     []*pick.Endpoint
	missing map[int]int
	spill   float64

	once   sync.Once
	groups *pick.Groups
}

func (g *grouping) get() *pick.Groups {
	g.once.Do(func() { g.groups = pick.NewGroups(g.set, g.missing, g.spill) })
	return g.groups
}

// publish makes picks and eps the ready set. mu is held.
func (b *Balancer[Req, Res]) publish(picks []*pick.Endpoint, eps []*endpoint[Req, Res]) {
	s := &set[Req, Res]{picks: picks, eps: eps}
	if b.graded {
		s.grouped = &grouping{set: picks, missing: b.missing(), spill: b.cfg.ZoneFactor}
	}
	b.ready.Store(s)
}

// missing counts the endpoints of each priority that have failed before they got into the ready set, or have left it for good. mu is held.
func (b *Balancer[Req, Res]) missing() map[int]int {
	var all map[int]int
	for _, ep := range b.listed {
		if !ep.ready && (ep.phase == lost || ep.failed > 0 && ep.old == nil) {
			if all == nil {
				all = map[int]int{}
			}
			all[max(ep.Traits().Priority, 0)]++
		}
	}
	return all
}

// regroup makes the ready set again, after something changed that groups are made by. mu is held.
func (b *Balancer[Req, Res]) regroup() {
	if b.graded {
		s := b.ready.Load()
		b.publish(s.picks, s.eps)
	}
}

// traits returns what the endpoint of a change is chosen by.
func (b *Balancer[Req, Res]) traits(c discover.Change) pick.Traits {
	return pick.Traits{
		ID: pick.HashOf(c.ID()), Weight: max(c.Weight, 1), Zone: c.Zone, Host: c.OnHost(), Priority: max(c.Priority, 0),
		Near: c.Zone != "" && c.Zone == b.cfg.Zone,
	}
}

// characterise gives ep, and what serves in its place, their traits, and reports whether those are others than before. mu is held.
func (b *Balancer[Req, Res]) characterise(ep *endpoint[Req, Res], t pick.Traits) (changed bool) {
	b.graded = b.graded || b.cfg.ByKey || t.Weight > 1 || t.Priority > 0 || t.Zone != "" && b.cfg.Zone != ""
	for ; ep != nil; ep = ep.old {
		if ep.Traits() != t {
			ep.Characterise(t)
			changed = true
		}
	}
	return changed
}

// chooseInTurn is choose where endpoints differ in weight, zone or priority, or keys count. While some are out those are passed over, as in
// chooseIn.
func (b *Balancer[Req, Res]) chooseInTurn(d *draft, ctx, ask context.Context, s *set[Req, Res], tried *attempt.Set, guarded bool) (belfry.Permit, time.Duration, bool) {
	var at time.Time
	if guarded {
		at = time.Now()
	}
	hurry := eagerness{}
	turn := b.turn(ctx, s.grouped.get(), tried)
	if turn.byKey {
		d.found(ByOrder)
	}
	out := func(i int) bool { return guarded && i != pick.None && s.eps[i].guard.Grade(at) == eject.Out }
	first, missed := true, false
	for i := turn.Next(); i != pick.None; i = turn.Next() {
		ep := s.eps[i]
		if first {
			other := turn.Beside()
			first, missed = false, out(i) && (other == pick.None || out(other))
		}
		if out(i) {
			ep.Hint(false) // it does not count as ready
			hurry.wait(ep.guard.Until(at))
			continue
		}
		if d != nil {
			b.weighBoth(d, s, i, turn.Beside())
		}
		permit, err := b.ask(d, ask, ep)
		if err == nil {
			if missed {
				b.panics.count(eject.In)
			}
			return permit, 0, true
		}
		hurry.note(err)
	}
	if !guarded || b.hope(s, at) {
		return belfry.Permit{}, hurry.pause, false
	}
	permit, ok := b.askAnyway(d, s, at)
	return permit, hurry.pause, ok
}

// turn returns the order in which a call asks: that of its key, if it has one that counts.
func (b *Balancer[Req, Res]) turn(ctx context.Context, g *pick.Groups, tried *attempt.Set) (t turn) {
	if key, ok := b.keyOf(ctx); ok {
		t.byKey, t.ranked = true, g.Rank(b.now(), b.random, key, pick.Bound, tried)
	} else {
		t.drawn = g.Begin(b.now(), b.random, tried)
	}
	return t
}

// A turn is one of two orders. An interface in its place would be on the heap.
type turn struct {
	byKey  bool
	drawn  pick.Turn
	ranked pick.Ranked
}

// Next returns the index of the endpoint to ask now.
func (t *turn) Next() int {
	if t.byKey {
		return t.ranked.Next()
	}
	return t.drawn.Next()
}

// Beside returns the index of the endpoint that was drawn with the one that Next has returned, and cost more; None if there is none.
func (t *turn) Beside() int {
	if t.byKey {
		return pick.None
	}
	return t.drawn.Beside()
}
