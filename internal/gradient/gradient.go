// Package gradient finds how many calls a server can take at a time, from how long they took. It is a function of the time
// and of samples: no clock, no goroutine, no chance.
//
// It cuts time into windows and asks two questions about each. Are calls slower than they are without a queue? Then the limit goes
// down in proportion: this is the gradient of long and short latency, known from Netflix's concurrency-limits
// (Gradient2) and Envoy's adaptive concurrency, with a room of the square root of the limit to grow into. And is the latency
// without a queue still what it was? That cannot be told from latency, and who takes the latency under load for the
// normal one drifts upwards. It can be told from throughput, an idea of Uber's Cinnamon, which looks at the covariance of
// calls in flight and throughput: where more calls in flight bring more throughput, there is no queue, however slow the
// calls are; where they bring none, all that is added waits. Here it is the elasticity: by how many percent throughput changes with
// one percent more calls in flight, from changes between neighbouring windows, so that a server that has become slower all
// at once does not count. It needs changes to look at, so while the limit is what bounds the calls it is a little higher in
// every other pair of windows. It is never lowered in order to look.
package gradient

import (
	"math"
	"time"
)

// Config says where the limit begins and ends. All are above 0, Min <= Initial <= Max.
type Config struct {
	Min, Initial, Max int
	// Window is the shortest time from which the limit is judged.
	Window time.Duration
}

const (
	enough    = 50    // calls that make a window
	tolerance = 1.5   // how much slower than without a queue is all right
	steepest  = 0.1   // the least of gradients
	smoothing = 0.5   // of changes of the limit
	lag       = 3     // windows between the two of which the difference is looked at
	rise      = 0.15  // of the latency without a queue, towards the one that throughput says is without
	sink      = 0.998 // of the latency without a queue, where there is nothing but queue
	memory    = 0.95  // of differences, from window to window
	dither    = 0.2   // how much higher the limit is in every other lag windows
	shock     = 0.25  // how far latency jumps, as a logarithm and beyond chance, for the server to be another
	certain   = 0.25  // the standard error up to which an elasticity counts
	follows   = 0.6   // the elasticity from which there is no queue
	futile    = 0.25  // the elasticity up to which there is nothing but queue
)

// A Controller holds a limit. Make one with [New]. It is not safe for concurrent use.
type Controller struct {
	cfg   Config
	limit float64
	base  float64 // latency without a queue, in seconds; 0: not known
	win   window
	turn  int // counts windows, for the dither

	points []point // of the last lag windows, the oldest first
	moved  sums
	before float64 // latency of the last window
}

// A window is what was seen since began.
type window struct {
	open     bool
	began    time.Duration
	calls    int
	latency  float64 // sum, in seconds
	inFlight float64 // sum
}

// A point is what one window comes to, as logarithms.
type point struct{ inFlight, throughput float64 }

// sums are those of a regression without intercept, of changes in throughput on changes in flight.
type sums struct {
	xy, xx, noise float64

	latest float64 // slope alone
}

// New returns a Controller.
func New(cfg Config) *Controller {
	return &Controller{cfg: cfg, limit: float64(cfg.Initial)}
}

// Limit returns how many calls there may be now.
func (c *Controller) Limit() int {
	limit := c.limit
	if c.turn/lag%2 == 1 {
		limit = max(limit*(1+dither), limit+1)
	}
	return int(max(float64(c.cfg.Min), min(float64(c.cfg.Max), math.Round(limit))))
}

// Base returns the latency without a queue, as far as it is known.
func (c *Controller) Base() time.Duration { return time.Duration(c.base * float64(time.Second)) }

// Sample tells of a call that has ended at now after latency, with so many in flight, itself among them. It reports whether the
// limit may have changed.
func (c *Controller) Sample(now, latency time.Duration, inFlight int) bool {
	w := &c.win
	if !w.open {
		*w = window{open: true, began: now}
		return false
	}
	w.calls++
	w.latency += latency.Seconds()
	w.inFlight += float64(inFlight)
	length := now - w.began
	if w.calls < enough || length < c.cfg.Window || length.Seconds() < 2*w.latency/float64(w.calls) {
		return false
	}
	c.judge(*w, length)
	*w = window{open: true, began: now}
	return true
}

// judge moves the limit by what a window has shown.
func (c *Controller) judge(w window, length time.Duration) {
	n := float64(w.calls)
	latency, inFlight := max(w.latency/n, 1e-9), w.inFlight/n
	first := c.before == 0
	if first || math.Abs(math.Log(latency/c.before)) > shock+2*math.Sqrt(2/n) {
		c.points, c.moved = c.points[:0], sums{}
	}
	c.before = latency
	if first { // the calls that ended so early are the short ones
		return
	}
	saturated := inFlight >= 0.8*float64(c.Limit())
	e, known := c.elasticity(point{math.Log(inFlight), math.Log(n / length.Seconds())}, n)
	c.rebase(latency, e, known, saturated)

	target := c.limit
	if gradient := max(steepest, min(1, tolerance*c.base/latency)); gradient < 1 || inFlight >= c.limit/2 {
		target = c.limit*gradient + math.Sqrt(c.limit)
	}
	c.limit += smoothing * (target - c.limit)
	c.limit = max(float64(c.cfg.Min), min(float64(c.cfg.Max), c.limit))
	if saturated {
		c.turn++
	} else {
		c.turn = 0
	}
}

// elasticity takes p in and returns by how much throughput has followed the calls in flight of late, and whether that is more
// than chance.
func (c *Controller) elasticity(p point, calls float64) (e float64, known bool) {
	if len(c.points) == lag {
		dx, dy := p.inFlight-c.points[0].inFlight, p.throughput-c.points[0].throughput
		s := &c.moved
		s.xy, s.xx = memory*s.xy+dx*dy, memory*s.xx+dx*dx
		s.noise = memory*s.noise + dx*dx*2/calls
		s.latest = dy / dx // not a number, if nothing has changed
		c.points = append(c.points[:0], c.points[1:]...)
	}
	c.points = append(c.points, p)
	if c.moved.xx == 0 {
		return 0, false
	}
	return c.moved.xy / c.moved.xx, math.Sqrt(c.moved.noise)/c.moved.xx < certain
}

// rebase learns what latency is without a queue: what it is, if it is less than thought, or if throughput says so. The
// elasticity is of some time ago, when a limit that grows may have been below the knee, so the latest change has to agree.
func (c *Controller) rebase(latency, e float64, known, saturated bool) {
	switch {
	case c.base == 0:
		c.base = latency
	case known && e > follows && c.moved.latest > follows:
		c.base += rise * (latency - c.base)
	case latency < c.base:
		c.base += 0.1 * (latency - c.base)
	case known && e < futile && saturated:
		c.base *= sink
	}
}
