package belfrytest

import (
	"context"
	"fmt"

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
	{rule: 1, name: "callers do not disturb each other", run: checkConcurrent},
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
	if held, _ := r.inner.sees(); held > 0 {
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
	for try := 0; short > 0 && try < 2; try++ { // what must dial first, does so now
		r.releaseAll(held)
		r.settle()
		held, short = r.fill(room)
	}
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
