package belfrytest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belfry-go/belfry"
)

// A check shows one rule to be kept. It runs in a trial, on a layer that it has built for itself, and judges that
// one rule: what else may be wrong with the layer is for other checks to say, and must not disturb this one.
type check struct {
	rule  int
	name  string
	first bool // without it the others may hang
	mixed bool // all rules at once
	run   func(r *trial)
}

func (c *check) title() string {
	if c.mixed {
		return "all rules: " + c.name
	}
	return fmt.Sprintf("rule %d: %s", c.rule, c.name)
}

// checks are in the order in which they are run.
var checks = []*check{
	{rule: 8, name: "no lock is held while calling inward", first: true, run: checkLocksInward},
	{rule: 8, name: "no lock is held while waiting", first: true, run: checkLocksWaiting},
	{rule: 8, name: "a panic or Goexit is no success", run: checkGoexit},
	{rule: 2, name: "Call and Release spend the permit whatever happens", run: checkSpent},
	{rule: 2, name: "the layer over itself knows its own permits", run: checkNested},
	{rule: 1, name: "callers do not get in each other's way", run: checkConcurrent},
	{rule: 3, name: "NoWait grants all that is free and no more", run: checkNoWaitGrants},
	{rule: 3, name: "NoWait does not wait", run: checkNoWaitReturns},
	{rule: 3, name: "NoWait does not overtake a waiter", run: checkNoBarging},
	{rule: 3, name: "who waits gets what becomes free", run: checkWoken},
	{rule: 3, name: "nothing is sent under a context that is done", run: checkDead},
	{rule: 4, name: "a cancelled Acquire leaves nothing reserved", run: checkCancelled},
	{rule: 4, name: "an Acquire cancelled at the moment of its grant leaves nothing reserved", run: checkCancelledLate},
	{rule: 4, name: "a failed or panicking Acquire leaves nothing reserved", run: checkFailedAcquire},
	{rule: 4, name: "waiters are served first come, first served", run: checkOrder},
	{rule: 5, name: "the wait ends with its context", run: checkWaitEnds},
	{rule: 5, name: "the call has the context of Call", run: checkCallContext},
	{rule: 5, name: "no context is kept", run: checkContextKept},
	{rule: 6, name: "a failed Acquire is not for ever", run: checkTransient},
	{rule: 6, name: "a failing Acquire is not repeated without a pause", run: checkHammering},
	{rule: 6, name: "ErrClosed is for ever", run: checkClosed},
	{rule: 7, name: "a refusal says so, and why", run: checkRefusals},
	{rule: 7, name: "the error of a request that was sent is no refusal", run: checkSentErrors},
	{name: "random operations", mixed: true, run: checkMixed},
}

// setup builds the layer over lo to hi permits of either kind.
func (r *trial) setup(lo, hi int) {
	r.inner.zero = r.chance(2)
	r.inner.picky = r.chance(2)
	r.build(r.between(lo, hi))
}

// pause lets time pass, unless that would end a wait.
func (r *trial) pause() {
	if r.traits.has(TimesOut) {
		r.wait()
	} else {
		r.settle()
	}
}

// await gives ops time to return.
func (r *trial) await(ops ...*op) (all bool) {
	for range 5 {
		r.wait()
		all = true
		for _, o := range ops {
			all = all && o.returned()
		}
		if all {
			return true
		}
		r.settle()
	}
	return false
}

// fill starts n Acquires where there should be room for them, and returns those that were granted, and how many found
// none: they waited, or were refused as not ready.
func (r *trial) fill(n int) (held []*op, short int) {
	var ops []*op
	var cancels []context.CancelFunc
	for range n {
		ctx, cancel := r.ctx("Acquire")
		cancels = append(cancels, cancel)
		ops = append(ops, r.acquire(ctx))
		r.wait()
	}
	r.await(ops...)
	for i, o := range ops {
		if !o.returned() {
			cancels[i]()
			short++
		} else if errorsIs(o.err, belfry.ErrNotReady) {
			short++
		}
	}
	r.await(ops...)
	for _, o := range ops {
		if o.returned() && o.granted {
			held = append(held, o)
		}
	}
	return held, short
}

func (r *trial) releaseAll(held []*op) {
	var ops []*op
	for _, o := range held {
		ops = append(ops, r.release(o))
	}
	r.await(ops...)
}

// allFree fails if something is reserved although nobody is there.
func (r *trial) allFree(after string) {
	r.settle()
	if r.c.rule != 2 && r.inner.misuses() > 0 {
		return // the count is worth nothing
	}
	if held, _, _ := r.inner.sees(); held > 0 {
		r.fail("%s: %s of the inner service left reserved", after, permits(held))
		return
	}
	room := r.room()
	if room == unlimited || r.traits.has(Refuses) {
		return
	}
	r.inner.beLenient(true)
	defer r.inner.beLenient(false)
	held, short := r.fill(room)
	if short > 0 {
		r.fail("%s: only %d of %d callers get in although nobody else is there: the layer has %s reserved", after, len(held), room, permits(short))
	}
	r.releaseAll(held)
}

func permits(n int) string {
	if n == 1 {
		return "1 permit"
	}
	return fmt.Sprintf("%d permits", n)
}

// --- rule 8 ---

func checkLocksInward(r *trial) {
	r.setup(2, 4)
	r.step("while other callers use the layer whenever it calls inward")
	for _, crowd := range []bool{false, true} {
		r.knocks.Store(knocks)
		var ops []*op
		for range r.between(3, 6) {
			ops = append(ops, r.passer())
			if !crowd {
				r.await(ops...)
			}
			if r.failed() {
				return
			}
		}
		r.await(ops...)
	}
}

// passer starts something quick.
func (r *trial) passer() *op {
	ctx := r.live()
	switch r.rand.IntN(4) {
	case 0:
		ctx = belfry.NoWait(ctx)
		fallthrough
	case 1:
		return r.start(func(o *op) {
			if o.acquire(ctx) {
				o.release()
			}
		})
	}
	req := r.request()
	r.inner.plan(req, plan{takes: time.Duration(r.between(0, 20)) * time.Millisecond})
	return r.do(ctx, req)
}

func checkLocksWaiting(r *trial) {
	r.setup(1, 3)
	r.step("while a caller waits")
	gate := make(chan struct{})
	defer close(gate)
	var ops []*op
	for range r.sendRoom() + 2 {
		req := r.request()
		r.inner.plan(req, plan{gate: gate})
		ops = append(ops, r.do(r.live(), req))
		r.wait()
	}
	if r.knock("").watch() == stands {
		r.fail("a lock is held while a caller waits or a call is in flight: another caller stands at it")
	}
}

func checkGoexit(r *trial) {
	r.setup(1, 3)
	how := []ending{panics, exits}[r.kind(2)]
	req := r.request()
	r.inner.plan(req, plan{ends: []ending{how}, takes: time.Duration(r.between(0, 1)) * time.Millisecond})
	o := r.do(r.live(), req)
	if !r.await(o) {
		r.fail("Call did not return after the inner Call %s", how)
		return
	}
	if o.called && o.err == nil && o.panic == nil && !o.exited && len(r.inner.tries(req)) > 0 {
		r.fail("the inner Call %s, and Call returned (%d, nil)", how, o.res)
	}
}

func (e ending) String() string {
	return [...]string{"answered", "failed", "refused", "panicked", "ended by Goexit"}[e]
}

// --- rule 2 ---

func checkSpent(r *trial) {
	r.setup(1, 3)
	r.spend()
}

func checkNested(r *trial) {
	r.inner.zero = r.chance(2)
	r.inner.capacity = r.between(1, 3)
	r.svc = r.wrap(r.wrap(r.inner))
	r.spend()
}

// spend uses permits one after the other, all in one way.
func (r *trial) spend() {
	way := r.kind(int(exits) + 4)
	how := answers
	var after string
	switch way {
	case 0:
		after = "after permits were given back unused"
	case 1:
		after = "after calls under a context that was done"
	case 2:
		after = "after calls that were cancelled"
	default:
		how = ending(way - 3)
		after = "after calls that " + how.String()
	}
	for range r.between(1, 5) {
		a := r.acquire(r.live())
		if !r.await(a) || !a.granted {
			continue
		}
		if o := r.spendOne(a, way, how); !r.await(o) {
			r.fail("%s: Call or Release did not return", after)
			return
		}
	}
	r.allFree(after)
}

func (r *trial) spendOne(a *op, way int, how ending) *op {
	if way == 0 {
		return r.release(a)
	}
	ctx, cancel := r.ctx("Call")
	req := r.request()
	p := plan{ends: []ending{how}}
	if way == 2 {
		p.takes = time.Minute
	}
	r.inner.plan(req, p)
	if way == 1 {
		cancel()
	}
	o := r.call(ctx, a, req)
	if way == 2 {
		r.wait()
		cancel()
	}
	return o
}

// --- rule 1 ---

func checkConcurrent(r *trial) {
	r.setup(2, 5)
	var alone []*op
	for range 2 {
		alone = append(alone, r.do(r.live(), r.request()))
		r.await(alone...)
	}
	held, _ := r.fill(1)
	r.releaseAll(held)
	r.settle()
	if held, _, _ := r.inner.sees(); held > 0 || r.inner.misuses() > 0 {
		return // that needs no second caller
	}
	r.overlap()
	r.crowd()
	r.settle()
	if held, _, _ := r.inner.sees(); held > 0 || r.inner.misuses() > 0 {
		r.fail("with several permits out at once, %s stayed reserved and %s used that was not theirs; one after the other all is well", permits(held), permits(r.inner.misuses()))
	}
}

// overlap has several permits out and uses them in another order.
func (r *trial) overlap() {
	held, _ := r.fill(r.sendRoom())
	r.rand.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	var ops []*op
	for i, o := range held {
		if i%3 == 2 {
			ops = append(ops, r.release(o))
			continue
		}
		req := r.request()
		r.inner.plan(req, plan{takes: time.Duration(r.between(0, 5)) * time.Millisecond})
		ops = append(ops, r.call(r.live(), o, req))
	}
	r.await(ops...)
}

// crowd has eight callers at once.
func (r *trial) crowd() {
	var ops []*op
	for range 8 {
		req := r.request()
		r.inner.plan(req, plan{takes: time.Duration(r.between(0, 5)) * time.Millisecond})
		ops = append(ops, r.do(r.live(), req))
	}
	r.await(ops...)
}

// --- rule 3 ---

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
	if o := r.acquire(belfry.NoWait(r.live())); !r.await(o) {
		r.blame(3, "Acquire waited under NoWait")
		return
	} else if o.granted {
		r.releaseAll([]*op{o})
	}
	r.settle() // who had to dial, has
	room := r.room()
	if held, _, _ := r.inner.sees(); !r.traits.has(Late) {
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
	case len(held) < room && r.c.mixed && r.shortAt(room-len(held)):
		r.failRule(4, "(or rule 2): at rest, %d of %d callers get in: the rest of the room is still reserved", len(held), room)
	case len(held) < room && !r.traits.has(Refuses):
		r.blame(3, "at rest, NoWait was granted %s, where %d are free", permits(len(held)), room)
	}
	r.releaseAll(held)
}

func checkNoWaitReturns(r *trial) {
	r.setup(1, 3)
	full := r.room() != unlimited
	if full {
		r.fill(r.room())
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

// A gated op is a Do whose call lasts until the gate is opened.
type gated struct {
	*op
	req    int
	gate   chan struct{}
	isOpen bool
	cancel context.CancelFunc
}

func (g *gated) open() {
	if !g.isOpen {
		g.isOpen = true
		close(g.gate)
	}
}

// gated starts one. To cancel it ends its wait for room; once it has that, and sends, nothing ends it but the gate.
func (r *trial) gated() *gated {
	g := &gated{req: r.request(), gate: make(chan struct{})}
	r.inner.plan(g.req, plan{gate: g.gate})
	ctx, cancel := r.ctx("Do")
	g.cancel = cancel
	call := ctx
	if !r.traits.has(Late) {
		call = r.live()
	}
	g.op = r.start(func(o *op) {
		if o.acquire(ctx) {
			o.call(call, g.req)
		}
	})
	r.wait()
	return g
}

// crowdBehind fills the room with calls in flight, and has n more callers wait, one behind the other.
func (r *trial) crowdBehind(n int) (gates []*gated) {
	for range r.sendRoom() + n {
		gates = append(gates, r.gated())
	}
	return gates
}

// stillWaiting fails for callers that do not get on although all are through.
func (r *trial) stillWaiting(gates []*gated) {
	r.settle()
	for _, g := range gates {
		if g.returned() || len(r.inner.tries(g.req)) > 0 {
			continue
		}
		held, running, _ := r.inner.sees()
		if held >= r.inner.capacity || running > 0 {
			continue // somebody took the room and keeps it
		}
		r.fail("a caller still waits a minute after all room became free")
		return
	}
}

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

// --- rule 4 ---

func checkCancelled(r *trial) {
	r.setup(1, 3)
	gates := r.crowdBehind(r.between(1, 5))
	for _, g := range gates[r.sendRoom():] {
		if r.chance(3) {
			continue
		}
		g.cancel()
		if r.chance(2) {
			r.wait()
		}
	}
	r.wait()
	for _, g := range gates {
		g.open()
	}
	for _, g := range gates {
		r.await(g.op)
	}
	r.allFree("after callers were cancelled while they waited")
}

func checkCancelledLate(r *trial) {
	r.setup(1, 2)
	after := "after a caller was cancelled at the moment of its grant"
	if room := r.room(); room != unlimited && r.chance(2) {
		held, _ := r.fill(room)
		r.releaseAll(held)
		if n, _, _ := r.inner.sees(); n > 0 {
			return // that needs no cancelling
		}
		if held, _ = r.fill(room); len(held) == 0 {
			return
		}
		waiter := r.gated()
		waiter.open()
		r.await(r.start(func(*op) { // in one go
			waiter.cancel()
			held[0].release()
		}))
		r.releaseAll(held[1:])
		r.await(waiter.op)
		r.allFree(after)
		return
	}
	gates := r.crowdBehind(1)
	waiter := gates[len(gates)-1]
	cancel := r.start(func(*op) { waiter.cancel() })
	gates[0].open()
	r.await(cancel)
	for _, g := range gates {
		g.open()
	}
	for _, g := range gates {
		r.await(g.op)
	}
	r.allFree(after)
}

func checkFailedAcquire(r *trial) {
	r.setup(1, 3)
	which := r.kind(5)
	if which == 0 {
		r.refusedAcquire()
		return
	}
	how := ending(which)
	for range r.between(1, 4) {
		r.inner.failNext(how)
		ctx, cancel := r.ctx("Do")
		o := r.do(ctx, r.request())
		if !r.await(o) {
			cancel()
			r.await(o)
		}
		r.inner.failAlways(false)
	}
	r.allFree("after the inner Acquire " + how.String())
}

// refusedAcquire has Acquires refused under NoWait, while everything is taken.
func (r *trial) refusedAcquire() {
	gates := r.crowdBehind(0)
	for range r.between(1, 3) {
		o := r.start(func(o *op) {
			if o.acquire(belfry.NoWait(r.live())) {
				o.release()
			}
		})
		r.wait()
		if !o.returned() {
			return
		}
	}
	for _, g := range gates {
		g.open()
		r.await(g.op)
	}
	r.allFree("after Acquires were refused under NoWait")
}

func checkOrder(r *trial) {
	if r.traits.has(Reorders) {
		return
	}
	r.setup(1, 3)
	n := r.sendRoom()
	var gates []*gated
	for range n + r.between(2, 6) {
		gates = append(gates, r.gated())
		r.pause()
	}
	for _, g := range gates[n:] {
		if r.chance(4) {
			g.cancel()
			r.wait()
		}
	}
	for _, g := range gates {
		g.open()
		r.pause()
	}
	order := r.inner.order()
	for i := 1; i < len(order); i++ {
		if order[i] < order[i-1] {
			r.fail("waiters were served in the order %s, who came in the order of their numbers", numbers(order))
			return
		}
	}
}

func numbers(reqs []int) string { return strings.Trim(fmt.Sprint(reqs), "[]") }

// --- rule 5 ---

func checkWaitEnds(r *trial) {
	r.setup(1, 3)
	gates := r.crowdBehind(1)
	waiter := gates[len(gates)-1]
	if waiter.returned() {
		return
	}
	waiter.cancel()
	if !r.await(waiter.op) && (!waiter.called || r.traits.has(Late)) && len(r.inner.tries(waiter.req)) == 0 {
		r.fail("a caller still waits for room after its context was cancelled")
	}
}

func checkCallContext(r *trial) {
	r.setup(1, 3)
	wait, endWait := r.ctx("Acquire")
	a := r.acquire(wait)
	if !r.await(a) || !a.granted {
		return
	}
	endWait()
	r.wait()
	ctx, cancel := r.ctx("Call")
	req := r.request()
	gate := make(chan struct{})
	r.inner.plan(req, plan{gate: gate, stubborn: true})
	o := r.call(ctx, a, req)
	r.wait()
	tries := r.inner.tries(req)
	if len(tries) == 0 {
		r.await(o)
		if o.returned() && errorsIs(o.err, context.Canceled) {
			r.fail("the end of Acquire's context ended a call under another: %v", o.err)
		}
		return
	}
	switch inside := tries[0].ctx; {
	case inside.Value(markKey{}) != "Call":
		r.fail("the inner Call has a context without the values of Call's (it has those of %v)", inside.Value(markKey{}))
	case inside.Err() != nil:
		r.fail("the end of Acquire's context ended the call: %v", inside.Err())
	default:
		cancel()
		r.wait()
		if inside.Err() == nil {
			r.fail("the end of Call's context did not reach the inner Call")
		}
	}
	close(gate)
	r.await(o)
}

func checkContextKept(r *trial) {
	r.setup(1, 3)
	for range r.between(1, 3) {
		ctx, cancel := r.ctx("Acquire")
		o := r.acquire(ctx)
		if r.await(o); o.returned() && o.granted {
			if r.chance(2) {
				cancel()
			}
			if r.chance(2) {
				r.releaseAll([]*op{o})
			} else {
				r.await(r.call(r.live(), o, r.request()))
			}
		}
	}
	gates := r.crowdBehind(r.between(1, 3))
	for _, g := range gates {
		if r.chance(2) {
			g.cancel()
		}
		g.open()
		r.wait()
	}
	r.settle()
}

// --- rule 6 ---

func checkTransient(r *trial) {
	r.setup(1, 3)
	how := []ending{fails, refuses}[r.kind(2)]
	for range r.between(1, 3) {
		r.inner.failNext(how)
		ctx, cancel := r.ctx("Do")
		o := r.do(ctx, r.request())
		if !r.await(o) {
			cancel()
			r.await(o)
		}
	}
	r.inner.failAlways(false)
	r.settle()
	if r.traits.has(Refuses) {
		return
	}
	o := r.do(r.live(), r.request())
	if r.await(o); o.returned() && o.err != nil {
		r.fail("Acquire still fails a minute after the inner Acquire %s for a moment: %v", how, o.err)
	}
}

func checkHammering(r *trial) {
	r.setup(1, 3)
	r.inner.failAlways(true)
	ctx, cancel := r.ctx("Do")
	o := r.do(ctx, r.request())
	r.await(o)
	cancel()
	r.await(o)
	r.inner.failAlways(false)
	if n := r.inner.burstiest(); n > hammering {
		r.fail("the inner Acquire, which fails, was tried again more than %d times without a pause", hammering)
	}
}

func checkClosed(r *trial) {
	r.setup(1, 3)
	gates := r.crowdBehind(1)
	waiter := gates[len(gates)-1]
	r.inner.close()
	for _, g := range gates {
		g.open()
	}
	r.settle()
	if !r.traits.has(Recovers) && !waiter.returned() && len(r.inner.tries(waiter.req)) == 0 {
		r.fail("a caller still waits for room a minute after the inner service closed")
		return
	}
	o := r.do(r.live(), r.request())
	if r.traits.has(Recovers) || r.traits.has(Refuses) {
		return
	}
	switch {
	case !r.await(o):
		r.fail("a caller waits for room although the inner service is closed")
	case o.err != nil && !errorsIs(o.err, belfry.ErrClosed):
		r.fail("the inner service is closed, but the error does not match ErrClosed: %v", o.err)
	}
}

// --- rule 7 ---

func checkRefusals(r *trial) {
	r.setup(1, 3)
	switch r.kind(4) {
	case 0:
		waiter := r.crowdBehind(1)[r.sendRoom()]
		if waiter.returned() {
			return
		}
		waiter.cancel()
		if r.await(waiter.op); waiter.returned() && waiter.err != nil && !errors.Is(waiter.err, context.Canceled) {
			r.fail("the error of a cancelled wait has lost its cause (context.Canceled): %v", waiter.err)
		}
	case 1:
		r.crowdBehind(0)
		ctx, cancel := context.WithTimeout(r.live(), time.Second)
		defer cancel()
		o := r.do(ctx, r.request())
		r.wait()
		if o.returned() {
			return
		}
		if r.await(o); o.returned() && o.err != nil && !errors.Is(o.err, context.DeadlineExceeded) {
			r.fail("the error of a wait that timed out has lost its cause (context.DeadlineExceeded): %v", o.err)
		}
	case 2:
		how := []ending{fails, refuses}[r.rand.IntN(2)]
		cause := []error{errAcquire, errRefused}[how-fails]
		r.inner.failNext(how)
		o := r.do(r.live(), r.request())
		if r.await(o); o.returned() && o.err != nil && !errorsIs(o.err, cause) {
			r.fail("the error of an Acquire that failed below has lost its cause (%v): %v", cause, o.err)
		}
	case 3:
		r.crowdBehind(0)
		r.acquire(belfry.NoWait(r.live())) // what is refused is judged there
		r.wait()
	}
}

func checkSentErrors(r *trial) {
	r.setup(1, 3)
	req := r.request()
	how := []ending{fails, refuses}[r.kind(2)]
	p := plan{ends: []ending{how}}
	if r.traits.has(Retries) && r.chance(2) {
		p.gate = make(chan struct{})
	}
	r.inner.plan(req, p)
	o := r.do(r.live(), req)
	if p.gate != nil {
		r.wait()
		r.inner.failAlways(true) // for the second attempt
		close(p.gate)
	}
	r.await(o)
	if how == refuses && o.returned() && o.called && len(r.inner.tries(req)) == 0 && !errorsIs(o.err, errRefused) {
		r.fail("a refusal below has lost its cause (%v): %v", errRefused, o.err)
	}
}
