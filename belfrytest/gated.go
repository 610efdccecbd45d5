package belfrytest

import "context"

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
