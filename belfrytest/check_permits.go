package belfrytest

import "time"

// What rules 1 and 2 say.

func checkSpent(r *trial) {
	r.setup(1, 3)
	r.spend()
}

// A layer that takes a foreign permit for its own does so when the other is one of its own kind.
func checkNested(r *trial) {
	r.inner.zero = r.chance(2)
	r.inner.capacity = r.between(1, 3)
	r.svc = r.wrap(r.wrap(r.inner))
	r.spend()
}

// The ways to use a permit; those from "called" on are calls that end in each way there is.
const (
	givenBack = iota
	calledDead
	calledCancelled
	calledLate
	called
)

// spend uses permits one after the other, all in one way.
func (r *trial) spend() {
	way := r.kind(called + int(exits) + 1)
	after := map[int]string{
		givenBack:       "after permits were given back unused",
		calledDead:      "after calls under a context that was done",
		calledCancelled: "after calls that were cancelled",
		calledLate:      "after calls on permits that were a minute old",
	}[way]
	if way >= called {
		after = "after calls that " + ending(way-called).String()
	}
	for range r.between(1, 5) {
		a := r.acquire(r.live())
		if !r.await(a) || !a.granted {
			continue
		}
		if o := r.spendOne(a, way); !r.await(o) {
			r.fail("%s: Call or Release did not return", after)
			return
		}
	}
	r.allFree(after)
}

func (r *trial) spendOne(a *op, way int) *op {
	ctx, cancel := r.ctx("Call")
	req := r.request()
	switch way {
	case givenBack:
		return r.release(a)
	case calledDead:
		cancel()
	case calledCancelled:
		r.inner.plan(req, plan{takes: time.Minute})
		o := r.call(ctx, a, req)
		r.wait()
		cancel()
		return o
	case calledLate:
		r.settle()
	default:
		r.inner.plan(req, plan{ends: []ending{ending(way - called)}})
	}
	return r.call(ctx, a, req)
}

// The first callers come one after the other: what goes wrong then is another rule's business.
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
	if held, _ := r.inner.sees(); held > 0 || r.inner.misuses() > 0 {
		return // that needs no second caller
	}
	r.overlap()
	r.crowd()
	r.settle()
	if held, _ := r.inner.sees(); held > 0 || r.inner.misuses() > 0 {
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
