package belfrytest

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-go/belfry"
)

// What rules 6 and 7 say.

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

// The inner service refuses everything, and the clock stands still for who does not pause.
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
		if o.returned() || r.traits.has(Sheds|Refuses) {
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
		if r.await(o); o.returned() && o.err != nil && !errors.Is(o.err, cause) && !r.traits.has(Recovers) && r.inner.unspent() == 0 {
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
