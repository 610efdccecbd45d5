package belfrytest

import (
	"context"
	"math/rand/v2"
	"time"
)

// checkMixed has callers do everything at once that no rule forbids. With a rule's checks off, it does without what
// that rule is about.
func checkMixed(r *trial) {
	r.setup(1, 4)
	callers := 8
	if r.off[1] {
		callers = 1
	}
	var ops []*op
	for range callers {
		c := &caller{trial: r, rand: rand.New(rand.NewPCG(r.rand.Uint64(), 0))}
		n := r.between(1, 6)
		for range n {
			c.reqs = append(c.reqs, r.request())
		}
		ops = append(ops, r.start(c.work))
	}
	for range 20 {
		if r.await(ops...) {
			break
		}
	}
	done := r.await(ops...)
	if held, running := r.inner.sees(); !done && held < r.inner.capacity && running == 0 {
		r.failRule(3, "a caller still waits although nothing else goes on and %s free", permits(r.inner.capacity-held))
	}
	r.inner.failAlways(false)
	r.settle()
	if held, _ := r.inner.sees(); held > 0 && !r.off[2] {
		r.failRule(4, "%s neither spent nor given back (unless that is rule 2: among all that went on it cannot be told)", permits(held))
		return
	}
	if !r.off[1] && !r.off[3] {
		r.atRest()
	}
}

// A caller does one random thing after the other.
type caller struct {
	*trial
	rand *rand.Rand // shadows the driver's
	reqs []int
}

func (c *caller) n(n int) int { return c.rand.IntN(n) }

func (c *caller) work(*op) {
	for _, req := range c.reqs {
		o := c.start(func(o *op) { c.once(o, req) })
		<-o.done
		if c.n(2) == 0 {
			time.Sleep(time.Duration(c.n(4)) * time.Millisecond)
		}
	}
}

func (c *caller) once(o *op, req int) {
	c.planCall(req)
	c.planAcquire()
	ctx, cancel := c.pickContext()
	defer cancel()
	if !o.acquire(ctx) {
		return
	}
	if c.n(3) == 0 {
		time.Sleep(time.Duration(c.n(3)) * time.Millisecond)
	}
	if c.n(4) == 0 {
		o.release()
		return
	}
	call, end := c.ctx("Call")
	defer end()
	switch {
	case c.off[2] || c.off[5]:
	case c.n(6) == 0:
		end()
	case c.n(6) == 0:
		defer time.AfterFunc(time.Duration(c.n(4))*time.Millisecond, end).Stop()
	}
	o.call(call, req)
}

// pickContext returns what to acquire under.
func (c *caller) pickContext() (context.Context, context.CancelFunc) {
	ctx, cancel := c.ctx("Acquire")
	switch c.n(6) {
	case 0:
		if !c.off[3] {
			cancel()
			return deriveNoWait(c.live(), derived[c.n(len(derived))])
		}
	case 1:
		if !c.off[4] && !c.off[5] {
			return ctx, onTimer(c.n(5), cancel)
		}
	case 2:
		if !c.off[4] && !c.off[5] {
			cancel()
			return ctx, cancel
		}
	}
	return ctx, cancel
}

// onTimer cancels after ms milliseconds, or when called.
func onTimer(ms int, cancel context.CancelFunc) context.CancelFunc {
	timer := time.AfterFunc(time.Duration(ms)*time.Millisecond, cancel)
	return func() { timer.Stop(); cancel() }
}

func (c *caller) planCall(req int) {
	p := plan{takes: time.Duration(c.n(4)) * time.Millisecond}
	switch {
	case c.off[2] || c.off[7] || c.off[8]:
	case c.n(3) == 0:
		for range 2 {
			p.ends = append(p.ends, ending(c.n(int(exits)+1)))
		}
	}
	p.stubborn = !c.off[5] && c.n(8) == 0
	c.inner.plan(req, p)
}

func (c *caller) planAcquire() {
	if c.off[4] || c.off[6] || c.off[7] || c.n(10) != 0 {
		return
	}
	c.inner.failNext([]ending{fails, refuses, panics, exits}[c.n(4)])
}
