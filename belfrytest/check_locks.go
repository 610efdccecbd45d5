package belfrytest

import (
	"time"

	"github.com/belfry-go/belfry"
)

// What rule 8 says.

// First one caller at a time, so that what is found is called by its name, then several, then some who wait.
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
	r.knocks.Store(knocks)
	gates := r.crowdBehind(2) // one of whom leaves, the other is served
	gates[len(gates)-1].cancel()
	r.await(gates[len(gates)-1].op)
	for _, g := range gates {
		g.open()
		r.await(g.op)
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

// A lock that is held while waiting shows when the next one comes: it stops the clock, and watch finds that.
func checkLocksWaiting(r *trial) {
	r.setup(1, 3)
	r.step("while a caller waits")
	gate := make(chan struct{})
	defer close(gate)
	for range r.sendRoom() + 2 {
		req := r.request()
		r.inner.plan(req, plan{gate: gate})
		r.do(r.live(), req)
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
