package belfrytest

import "context"

// What rule 5 says.

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

// The call is stubborn, so that a layer which leaves when its context ends is seen to leave too early.
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
	r.pause()
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
		r.fail("the inner Call's context ended before Call's: %v", inside.Err())
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

// Time passes between the methods, and each has a context of its own, so that what was kept is used too late.
func checkContextKept(r *trial) {
	r.setup(1, 3)
	for range r.between(1, 3) {
		ctx, cancel := r.ctx("Acquire")
		o := r.acquire(ctx)
		if r.await(o); o.returned() && o.granted {
			if r.chance(2) {
				cancel()
			}
			r.settle()
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
