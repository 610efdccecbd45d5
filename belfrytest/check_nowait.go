package belfrytest

import (
	"context"
	"time"

	"github.com/belfry-go/belfry"
)

// What rule 3 says.

func checkNoWaitGrants(r *trial) {
	r.setup(1, 5)
	if r.chance(2) {
		r.crowd()
	}
	r.atRest()
}

// atRest fails unless all that is free is granted under NoWait, and no more.
func (r *trial) atRest() {
	if r.room() == unlimited {
		return
	}
	r.settle()
	r.step("while asking under NoWait for all that is free")
	if !r.wakeUp() {
		r.blame(3, "Acquire waited under NoWait")
		return
	}
	room := r.room()
	if held, _ := r.inner.sees(); !r.traits.has(Late) {
		room = min(room, r.inner.capacity-held)
	}
	var held []*op
	for range room + 1 {
		o := r.acquire(belfry.NoWait(r.live()))
		r.wait()
		if !o.returned() || !o.granted {
			break
		}
		held = append(held, o)
	}
	switch {
	case len(held) > room:
		r.blame(3, "at rest, %d callers were admitted, where there is room for %d", len(held), room)
	case len(held) < room && r.c.mixed && !r.traits.has(Refuses) && r.shortAt(room-len(held)):
		r.failRule(4, "at rest, %d of %d callers get in: the rest is still reserved (unless that is rule 2: among all that went on it cannot be told)", len(held), room)
	case len(held) < room && !r.traits.has(Refuses):
		r.blame(3, "at rest, NoWait was granted %s, where %d are free", permits(len(held)), room)
	}
	r.releaseAll(held)
}

// Everything is taken, so that who would wait does. No time passes: a sleep is a wait too.
func checkNoWaitReturns(r *trial) {
	r.setup(1, 3)
	full := false
	if room := r.room(); room != unlimited {
		held, _ := r.fill(room)
		full = len(held) == room
	}
	for _, name := range derived {
		ctx, cancel := deriveNoWait(r.live(), name)
		defer cancel()
		r.step("while asking under NoWait %s", name)
		o := r.acquire(ctx)
		r.wait()
		switch {
		case !o.returned():
			r.fail("Acquire waits under NoWait%s", throughName(name))
			return
		case o.granted && full && !r.traits.has(Refuses):
			r.fail("NoWait%s was granted room that there is not", throughName(name))
			return
		case o.granted:
			r.releaseAll([]*op{o})
		}
	}
}

func throughName(name string) string {
	if name == "" {
		return ""
	}
	return " (through context." + name + ")"
}

// wakeUp lets a layer that must dial first do so, and another one below it. It reports whether nobody waited.
func (r *trial) wakeUp() bool {
	for range 3 {
		o := r.acquire(belfry.NoWait(r.live()))
		if !r.await(o) {
			return false
		}
		if o.granted {
			r.releaseAll([]*op{o})
			break
		}
		r.settle() // what was asked for comes by itself
	}
	r.settle()
	return true
}

// shortAt reports whether a caller who waits does not get in either, as one of n.
func (r *trial) shortAt(n int) bool {
	held, short := r.fill(n)
	r.releaseAll(held)
	return short > 0
}

// derived are the names of contexts made of NoWait.
var derived = []string{"", "WithValue", "WithTimeout", "WithCancel"}

func deriveNoWait(ctx context.Context, name string) (context.Context, context.CancelFunc) {
	noWait := belfry.NoWait(ctx)
	switch name {
	case "WithValue":
		return context.WithValue(noWait, markKey{}, name), func() {}
	case "WithTimeout":
		return context.WithTimeout(noWait, time.Hour)
	case "WithCancel":
		return context.WithCancel(noWait)
	}
	return noWait, func() {}
}

// Release and NoWait come in one go, before the waiter whose turn it is has had time to run.
func checkNoBarging(r *trial) {
	r.setup(1, 3)
	if r.room() == unlimited {
		return
	}
	held, _ := r.fill(r.room())
	if len(held) < r.room() {
		return
	}
	first := r.acquire(r.live())
	r.wait()
	if first.returned() {
		return // refused
	}
	barger := r.start(func(o *op) {
		held[0].release()
		o.acquire(belfry.NoWait(r.live()))
	})
	r.wait()
	if barger.returned() && barger.granted && !first.returned() {
		r.fail("NoWait was granted room that another caller had been waiting for")
	}
}

// Wake-ups get lost when two places become free at once, or by one of several ways.
func checkWoken(r *trial) {
	r.setup(1, 4)
	if r.room() != unlimited && r.chance(3) {
		r.wokenByRelease()
		return
	}
	gates := r.crowdBehind(r.between(1, 5))
	r.rand.Shuffle(len(gates), func(i, j int) { gates[i], gates[j] = gates[j], gates[i] })
	for _, g := range gates {
		g.open()
		if r.chance(2) {
			continue // two at once
		}
		r.pause()
	}
	r.stillWaiting(gates)
}

// wokenByRelease has room become free by Release, not by the end of a call.
func (r *trial) wokenByRelease() {
	held, _ := r.fill(r.room())
	var waiting []*gated
	for range r.between(1, len(held)+1) {
		g := r.gated()
		g.open()
		waiting = append(waiting, g)
	}
	r.releaseAll(held)
	r.stillWaiting(waiting)
}

// stillWaiting fails for callers that do not get on although all are through.
func (r *trial) stillWaiting(gates []*gated) {
	r.settle()
	for _, g := range gates {
		if g.returned() || len(r.inner.tries(g.req)) > 0 {
			continue
		}
		held, running := r.inner.sees()
		if held >= r.inner.capacity || running > 0 {
			continue // somebody took the room and keeps it
		}
		r.fail("a caller still waits a minute after all room became free")
		return
	}
}

// Layers that acquire inside Call look at the context first. Others pass on what they get.
func checkDead(r *trial) {
	r.setup(1, 3)
	ctx, cancel := r.ctx("Call")
	req := r.request()
	switch {
	case r.traits.has(Late) && r.chance(2):
		a := r.acquire(r.live())
		if !r.await(a) || !a.granted {
			return
		}
		cancel()
		o := r.call(ctx, a, req)
		r.await(o)
	case r.traits.has(Retries):
		r.inner.plan(req, plan{ends: []ending{fails}, takes: time.Second, stubborn: true})
		o := r.do(ctx, req)
		r.wait()
		cancel()
		r.await(o)
	default:
		return
	}
	for i, a := range r.inner.tries(req) {
		if a.dead {
			r.fail("attempt %d was sent although the context of Call was done", i+1)
			return
		}
	}
}
