package belfrytest

import (
	"fmt"
	"strings"

	"github.com/belfry-go/belfry"
)

// What rule 4 says.

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
	if room := r.room(); room == unlimited || r.chance(2) {
		r.cancelAtEnd()
	} else if !r.cancelAtRelease(room) {
		return
	}
	r.allFree("after a caller was cancelled at the moment of its grant")
}

// cancelAtRelease cancels a waiter in one go with the Release that makes room for it, unless a Release is not worth much.
func (r *trial) cancelAtRelease(room int) bool {
	held, _ := r.fill(room)
	r.releaseAll(held)
	if n, _ := r.inner.sees(); n > 0 {
		return false
	}
	if held, _ = r.fill(room); len(held) == 0 {
		return false
	}
	waiter := r.gated()
	waiter.open()
	r.atOnce(waiter.cancel, held[0].release)
	r.releaseAll(held[1:])
	r.await(waiter.op)
	return true
}

// cancelAtEnd cancels a waiter in one go with the end of the call that makes room for it.
func (r *trial) cancelAtEnd() {
	gates := r.crowdBehind(1)
	waiter := gates[len(gates)-1]
	r.atOnce(waiter.cancel, gates[0].open)
	for _, g := range gates {
		g.open()
	}
	for _, g := range gates {
		r.await(g.op)
	}
}

// atOnce does both in either order, with nothing in between.
func (r *trial) atOnce(f, g func()) {
	if r.chance(2) {
		f, g = g, f
	}
	r.await(r.start(func(*op) { f(); g() }))
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

// Places become free one at a time, so that there is only one right order.
func checkOrder(r *trial) {
	if r.traits.has(Reorders) {
		return
	}
	if r.traits.has(Hedges) {
		r.setup(1, 1) // where there is room for two attempts, two waiters are served at once
	} else {
		r.setup(1, 3)
	}
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
