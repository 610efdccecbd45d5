package load_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/load"
)

// back brings endpoint i, which has left, back after it was away for d.
func (c *crowd) back(i int, d time.Duration) {
	left := c.now
	c.pass(d)
	c.eps[i].(load.Rejoiner).Rejoin(left, c.now)
}

// measuring is the metrics that remember.
func measuring() map[string]load.Metric {
	return map[string]load.Metric{
		"expected": load.Expected{}, "reported": load.Reported{}, "probing": load.Probing{}, "peak ewma": load.PeakEWMA{},
	}
}

func TestRejoinKeepsWhatIsKnown(t *testing.T) {
	for name, metric := range measuring() {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, metric, 4)
			c.work(20*time.Second, slow0)
			c.eps[0].Leave()
			c.back(0, 2*time.Second)
			c.want("the latency of a slow one that was away for 2 s", float64(c.eps[0].Latency(c.now).Milliseconds()), 160, 205)
			c.want("what a quick one costs", c.cost(1, 0), 15, 25)
			i := c.join()
			c.want("what a newcomer is taken to cost", c.cost(i, 0), 18, 21)
		})
	}
}

func TestRejoinKeepsOdds(t *testing.T) {
	for name, metric := range measuring() {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, metric, 3)
			c.work(10*time.Second, steady)
			for range 10 {
				c.answer(0, time.Millisecond, load.Failure)
			}
			before := c.cost(0, 0)
			c.eps[0].Leave()
			c.back(0, time.Second)
			c.want("what one costs that fails", c.cost(0, 0)/before, 0.7, 1.01)
		})
	}
}

// While it is away it says nothing of what is usual, and when it is back it does again.
func TestRejoinCountsAmongPeers(t *testing.T) {
	for name, metric := range measuring() {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, metric, 3)
			c.work(10*time.Second, func(i int) time.Duration { return time.Duration(20+180*min(i, 1)) * time.Millisecond })
			typical := func() float64 {
				c.pass(time.Second)
				c.answer(0, 20*time.Millisecond, load.Success) // a survey
				i := c.join()
				cost := c.cost(i, 0)
				c.eps[i].Leave()
				c.eps = c.eps[:i]
				return cost
			}
			c.want("what is typical of 20, 200 and 200 ms", typical(), 160, 205)
			for range 2 { // again: no harm
				c.eps[1].Leave()
				c.eps[2].Leave()
			}
			c.want("what is typical of 20 ms", typical(), 15, 25)
			for range 2 {
				c.back(1, 0)
				c.back(2, 0)
			}
			c.want("what is typical of all", typical(), 160, 205)
			c.eps[1].Leave()
			c.eps[2].Leave()
			c.want("what is typical of 20 ms once more", typical(), 15, 25)
		})
	}
}

func TestRejoinSlowStart(t *testing.T) {
	for _, s := range []struct {
		name      string
		old, away time.Duration
		low, high float64
	}{
		{"away for less than SlowStart: none", time.Minute, 9 * time.Second, 0.9, 1.1},
		{"away for as long: a new one", time.Minute, 10 * time.Second, 90, 110},
		{"away in the midst of it: it goes on", 2 * time.Second, 3 * time.Second, 3.5, 4.5},
	} {
		t.Run(s.name, func(t *testing.T) {
			c := newCrowd(t, load.Expected{}, 3)
			c.work(10*time.Second, steady)
			i := c.join()
			c.work(s.old, steady)
			c.eps[i].Leave()
			c.back(i, s.away)
			c.want("what it costs, as a part of another", c.cost(i, 0)/c.cost(0, 0), s.low, s.high)
		})
	}
}

// A trial that is due would keep all others from theirs, while nobody can carry it out.
func TestRejoinHoldsNoTrial(t *testing.T) {
	c := newCrowd(t, load.Expected{}, 6)
	c.work(20*time.Second, func(i int) time.Duration { return time.Duration(20+200*(i/4)) * time.Millisecond })
	quick := func(d time.Duration) {
		for end := c.now + d.Microseconds(); c.now < end; c.pass(10 * time.Millisecond) {
			for i := range 4 {
				c.answer(i, 20*time.Millisecond, load.Success)
			}
		}
	}
	for i := 0; c.cost(4, 0) > 30 && c.cost(5, 0) > 30; i++ {
		if i > 100 {
			t.Fatal("neither of two slow ones is to be tried")
		}
		quick(100 * time.Millisecond)
	}
	due, other := 4, 5
	if c.cost(5, 0) < 30 {
		due, other = 5, 4
	}
	c.eps[due].Leave()
	quick(5 * time.Second)
	if cost := c.cost(other, 0); cost > 30 {
		t.Errorf("the other is not tried while the one that is due is away: it costs %v ms", cost)
	}
	c.back(due, 0)
	if cost := c.cost(due, 0); cost < 30 {
		t.Errorf("two are tried at once: it costs %v ms", cost)
	}
}

// A call from before may end when the endpoint is away, or back.
func TestRejoinWithCallsOut(t *testing.T) {
	for name, metric := range measuring() {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, metric, 3)
			c.work(10*time.Second, steady)
			first, second := c.eps[0].Start(c.now), c.eps[0].Start(c.now)
			c.eps[0].Leave()
			c.pass(20 * time.Millisecond)
			c.eps[0].End(c.now, first, load.Success)
			c.back(0, 0)
			c.eps[0].End(c.now, second, load.Success)
			c.pass(time.Second)
			c.want("what it costs with nothing in flight", c.cost(0, 0), 15, 25)
		})
	}
}
