package load_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/load"
)

// A crowd is a fleet in a time of its own.
type crowd struct {
	t     *testing.T
	fleet load.Fleet
	eps   []load.Endpoint
	now   int64
	rand  *rand.Rand
}

func newCrowd(t *testing.T, metric load.Metric, n int) *crowd {
	c := &crowd{t: t, fleet: metric.Fleet(), rand: rand.New(rand.NewPCG(seed, 3))}
	for range n {
		c.join()
	}
	return c
}

func (c *crowd) join() int {
	c.eps = append(c.eps, c.fleet.Join("", c.now))
	return len(c.eps) - 1
}

func (c *crowd) pass(d time.Duration) { c.now += d.Microseconds() }

// answer lets endpoint i end a call that took so long. Time does not pass.
func (c *crowd) answer(i int, took time.Duration, class load.Class) {
	c.eps[i].End(c.now, c.eps[i].Start(c.now-took.Microseconds()), class)
}

// work lets all endpoints in turn answer for a while, each ten times a second.
func (c *crowd) work(d time.Duration, took func(i int) time.Duration) {
	for end := c.now + d.Microseconds(); c.now < end; {
		for i := range c.eps {
			c.answer(i, took(i), load.Success)
		}
		c.pass(100 * time.Millisecond)
	}
}

func (c *crowd) cost(i, held int) float64 { return c.eps[i].Cost(c.now, held) / 1000 } // in ms

func (c *crowd) want(what string, got, low, high float64) {
	c.t.Helper()
	if got < low || got > high {
		c.t.Errorf("%s is %.4g, want %.4g to %.4g", what, got, low, high)
	}
}

func steady(int) time.Duration { return 20 * time.Millisecond }

func (c *crowd) scattered(int) time.Duration {
	return time.Duration(c.rand.ExpFloat64() * 20e6)
}

// slow0 is steady but for the first, which is ten times as slow.
func slow0(i int) time.Duration {
	if i == 0 {
		return 200 * time.Millisecond
	}
	return 20 * time.Millisecond
}

func TestExpectedValidate(t *testing.T) {
	for _, c := range []struct {
		metric load.Expected
		want   string
	}{
		{load.Expected{}, ""},
		{load.Expected{Decay: 1, Initial: 1, SlowStart: 1}, ""},
		{load.Expected{Decay: -1}, "load: decay must not be negative, got -1ns"},
		{load.Expected{Initial: -time.Second}, "load: initial must not be negative, got -1s"},
		{load.Expected{SlowStart: -1}, "load: slow start must not be negative, got -1ns"},
	} {
		got := ""
		if err := c.metric.Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%#v: %q, want %q", c.metric, got, c.want)
		}
	}
}

func TestExpectedLatency(t *testing.T) {
	t.Run("before any answer it is Initial, and only the count decides", func(t *testing.T) {
		c := newCrowd(t, load.Expected{Initial: 40 * time.Millisecond}, 2)
		c.want("the cost of one", c.cost(0, 0), 40, 40)
		c.want("the cost with two in flight", c.cost(0, 2), 120, 120)
		if !c.fleet.Timed() {
			t.Error("time matters")
		}
	})
	t.Run("endpoints alike count as typical, however their answers scatter", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 10)
		c.work(20*time.Second, c.scattered)
		c.pass(time.Second)
		for i := range c.eps {
			c.want("the cost as a part of the first", c.cost(i, 0)/c.cost(0, 0), 0.8, 1.25)
		}
	})
	t.Run("endpoints that differ count as they are", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 10)
		c.work(20*time.Second, func(i int) time.Duration { return c.scattered(i) * (slow0(i) / steady(i)) })
		c.want("the cost of one ten times as slow, as a part", c.cost(0, 0)/c.cost(1, 0), 6, 16)
		c.want("its latency in ms", float64(c.eps[0].Latency(c.now).Milliseconds()), 130, 320)
	})
	t.Run("without news it goes back to what is typical", func(t *testing.T) {
		c := newCrowd(t, load.Expected{Decay: 2 * time.Second}, 5)
		c.work(10*time.Second, slow0)
		before := c.cost(0, 0) - 20
		c.pass(2 * time.Second)
		c.want("what it is above the median after the decay", (c.cost(0, 0)-20)/before, 0.34, 0.40)
	})
	t.Run("the latest answer is felt, for a moment", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 5)
		c.work(5*time.Second, steady)
		c.answer(0, 60*time.Millisecond, load.Success)
		c.want("the cost after an answer that took 40 ms longer", c.cost(0, 0), 23.5, 25)
		c.pass(time.Second)
		c.want("the cost a second later", c.cost(0, 0), 20, 21)
	})
	t.Run("one answer is no shift, several are", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 5)
		c.work(10*time.Second, steady)
		c.answer(0, 200*time.Millisecond, load.Success)
		c.pass(time.Second)
		c.want("the cost after one slow answer", c.cost(0, 0), 20, 30)
		c.work(400*time.Millisecond, slow0)
		c.want("the cost after some", c.cost(0, 0), 180, 220)
	})
}

func TestExpectedHowCallsEnd(t *testing.T) {
	t.Run("a failure is no quick answer, and costs attempts", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 5)
		c.work(10*time.Second, steady)
		for range 2000 {
			c.answer(0, time.Millisecond, load.Failure)
			c.answer(0, time.Millisecond, load.Success)
		}
		c.want("the cost after as many failures as successes", c.cost(0, 0), 34, 42)
	})
	t.Run("a few failures in a row outweigh what was good before", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 5)
		c.work(10*time.Second, steady)
		c.answer(0, time.Millisecond, load.Failure)
		c.want("the cost after one", c.cost(0, 0), 20, 21)
		c.answer(0, time.Millisecond, load.Failure)
		c.want("the cost after two", c.cost(0, 0), 400, 450)
		c.answer(0, 20*time.Millisecond, load.Success)
		c.want("the cost after a success from before that", c.cost(0, 0), 400, 450)
		c.pass(30 * time.Millisecond)
		c.answer(0, 20*time.Millisecond, load.Success)
		c.want("the cost after a success", c.cost(0, 0), 50, 60)
	})
	t.Run("X10 a cancelled call is a lower bound", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 5)
		c.work(10*time.Second, steady)
		for range 100 {
			c.pass(10 * time.Millisecond)
			c.answer(0, time.Millisecond, load.Cancelled)
			c.answer(1, 500*time.Millisecond, load.Cancelled)
		}
		c.want("the cost after short ones", c.cost(0, 0), 19, 21)
		c.want("the cost after long ones", c.cost(1, 0), 300, 520)
	})
	t.Run("a rejection is nothing", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 5)
		c.work(10*time.Second, steady)
		before := c.cost(0, 0)
		for range 100 {
			c.answer(0, 900*time.Millisecond, load.Rejected)
		}
		c.want("the cost", c.cost(0, 0), before, before)
	})
}

func TestExpectedEvidence(t *testing.T) {
	fresh := func(t *testing.T) *crowd {
		c := newCrowd(t, load.Expected{}, 3)
		c.work(10*time.Second, steady)
		return c
	}
	t.Run("a call that is out for long", func(t *testing.T) {
		c := fresh(t)
		c.eps[0].Start(c.now)
		c.pass(time.Second)
		c.want("the cost", c.cost(0, 1), 2*2000-1, 2*2000+1)
		c.eps[0].Start(c.now)
		c.want("the cost with a new one", c.cost(0, 2), 3*1000-1, 3*1000+1)
	})
	t.Run("overtaken twice it says nothing, and when it is old it is no load", func(t *testing.T) {
		c := fresh(t)
		c.eps[0].Start(c.now)
		c.pass(200 * time.Millisecond)
		c.answer(0, 20*time.Millisecond, load.Success)
		c.answer(0, 20*time.Millisecond, load.Success)
		c.want("the cost", c.cost(0, 1), 35, 45)
		c.pass(250 * time.Millisecond)
		c.want("the cost later", c.cost(0, 1), 18, 22)
	})
	t.Run("what scatter explains is no evidence", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 3)
		c.work(20*time.Second, c.scattered)
		c.pass(time.Second)
		before := c.cost(0, 1)
		c.eps[0].Start(c.now)
		c.pass(30 * time.Millisecond)
		c.want("the cost, as a part of what it was", c.cost(0, 1)/before, 0.9, 1.1)
		c.pass(time.Second)
		c.want("the cost when it is old, as a part", c.cost(0, 1)/before, 20, 120)
	})
	t.Run("it is left out when nothing was started for long", func(t *testing.T) {
		c := fresh(t)
		c.eps[0].Start(c.now)
		c.pass(9 * time.Second)
		c.want("the cost after 9 s", c.cost(0, 0), 17_000, 18_001)
		c.pass(time.Second)
		c.want("the cost after 10 s", c.cost(0, 0), 19, 21)
	})
}

func TestExpectedTrial(t *testing.T) {
	// slowed has an endpoint that was slow and that nothing is sent to any more.
	slowed := func(t *testing.T) *crowd {
		c := newCrowd(t, load.Expected{}, 10)
		c.work(10*time.Second, slow0)
		return c
	}
	others := func(c *crowd, d time.Duration) (trials int) {
		due := false
		for end := c.now + d.Microseconds(); c.now < end; c.pass(10 * time.Millisecond) {
			for i := range c.eps[1:] {
				c.answer(i+1, 20*time.Millisecond, load.Success)
			}
			if cheap := c.cost(0, 0) < 20; cheap && !due {
				trials++
				due = true
			}
		}
		return trials
	}
	t.Run("it is due after a while, and one good answer is believed", func(t *testing.T) {
		c := slowed(t)
		if others(c, time.Second) != 1 {
			t.Fatal("no trial")
		}
		mark := c.eps[0].Start(c.now)
		c.want("the cost while it is tried", c.cost(0, 1), 100, 500)
		c.pass(20 * time.Millisecond)
		c.eps[0].End(c.now, mark, load.Success)
		c.want("the cost after it", c.cost(0, 0), 19, 21)
	})
	t.Run("what was started before it is old news", func(t *testing.T) {
		c := slowed(t)
		old := c.eps[0].Start(c.now)
		c.answer(0, 20*time.Millisecond, load.Success)
		c.answer(0, 20*time.Millisecond, load.Success) // overtaken: it does not stop a trial
		for range 20 {
			c.answer(0, 200*time.Millisecond, load.Success)
		}
		others(c, 2*time.Second)
		c.answer(0, 20*time.Millisecond, load.Success)
		before := c.cost(0, 0)
		c.eps[0].End(c.now, old, load.Failure)
		c.want("the cost", c.cost(0, 0), before, before)
	})
	t.Run("pauses grow while trials fail", func(t *testing.T) {
		for _, class := range []load.Class{load.Success, load.Failure, load.Cancelled} {
			c := slowed(t)
			at := []int64{}
			for start := c.now; c.now-start < 60e6; {
				if others(c, 20*time.Millisecond) > 0 {
					at = append(at, c.now)
					c.answer(0, 0, load.Rejected) // takes the trial
					mark := c.eps[0].Start(c.now)
					c.pass(200 * time.Millisecond)
					c.eps[0].End(c.now, mark, class)
				}
			}
			if n := len(at); n < 8 || n > 20 {
				t.Errorf("%d trials in a minute, want 8 to 20", n)
			} else if last := at[n-1] - at[n-2]; last < 5e6 {
				t.Errorf("%v: the last pause is %d µs, want 5 s", class, last)
			}
		}
	})
	t.Run("one request in 500 is one", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 200)
		c.work(10*time.Second, func(i int) time.Duration { return slow0(i % 2) })
		requests, trials := 0, 0
		for range 3000 {
			for i := 1; i < len(c.eps); i += 20 {
				c.answer(i, 20*time.Millisecond, load.Success)
				requests++
			}
			for i := 0; i < len(c.eps); i += 2 {
				if c.cost(i, 0) < 20 {
					c.answer(i, 200*time.Millisecond, load.Success)
					trials++
					requests++
				}
			}
			c.pass(10 * time.Millisecond)
		}
		if most := requests/500 + 2; trials > most || trials < most/2 {
			t.Errorf("%d of %d requests were trials, want about %d", trials, requests, most)
		}
	})
}

func TestExpectedNewcomer(t *testing.T) {
	t.Run("it is tried soon, then begins slowly", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 5)
		c.work(10*time.Second, steady)
		i := c.join()
		c.want("the cost of its first request", c.cost(i, 0), 19, 21)
		mark := c.eps[i].Start(c.now)
		c.want("the cost of a second before it answers", c.cost(i, 1), 2*20*100*10*0.9, 2*20*100*10*1.1)
		c.pass(20 * time.Millisecond)
		c.eps[i].End(c.now, mark, load.Success)
		c.want("the cost when it has answered", c.cost(i, 0), 1800, 2200)
		c.pass(5 * time.Second)
		c.want("the cost at half of SlowStart", c.cost(i, 0), 76, 84)
		c.pass(5 * time.Second)
		c.want("the cost after SlowStart", c.cost(i, 0), 19, 21)
	})
	t.Run("one that never answers is no gate", func(t *testing.T) {
		c := newCrowd(t, load.Expected{SlowStart: 1}, 5)
		c.work(10*time.Second, steady)
		i := c.join()
		c.eps[i].Start(c.now)
		c.pass(time.Millisecond) // longer than SlowStart
		c.want("the cost of a second", c.cost(i, 1), 360, 440)
		c.pass(11 * time.Second)
		c.want("the cost after 11 s", c.cost(i, 1), 38, 42)
	})
	t.Run("among newcomers it is void", func(t *testing.T) {
		c := newCrowd(t, load.Expected{}, 3)
		c.eps[0].Start(c.now)
		c.want("the cost", c.cost(0, 1), 60, 60)
	})
	t.Run("one that comes back begins slowly", func(t *testing.T) {
		c := newCrowd(t, load.Expected{SlowStart: 2 * time.Second}, 3)
		c.eps[0].Back(c.now)
		c.want("the cost before any has answered", c.cost(0, 0), 30, 30)
		c.work(10*time.Second, steady)
		c.eps[0].Back(c.now)
		c.want("the cost", c.cost(0, 0), 1800, 2200)
		c.pass(time.Second)
		c.want("the cost a second later", c.cost(0, 0), 76, 84)
		c.want("and for how much of it that is the reason", c.eps[0].(load.SlowStarter).SlowStart(c.now), 3.9, 4.1)
		c.pass(time.Second)
		c.want("which is nothing in the end", c.eps[0].(load.SlowStarter).SlowStart(c.now), 1, 1)
	})
}

func TestExpectedLeave(t *testing.T) {
	c := newCrowd(t, load.Expected{}, 3)
	c.work(10*time.Second, func(i int) time.Duration { return steady(i) * time.Duration(1+9*(i/2)+9*(i/1%2)) })
	mark := c.eps[1].Start(c.now)
	for range 2 {
		c.eps[1].Leave()
		c.eps[2].Leave()
	}
	c.eps[1].End(c.now, mark, load.Success)
	c.pass(time.Second)
	c.answer(0, 20*time.Millisecond, load.Success)
	i := c.join()
	c.want("what a newcomer costs, of one left", c.cost(i, 0), 19, 21)
}

// TestExpectedConcurrent is for the race detector, and for a survey that would wait for an endpoint whose lock waits for it.
func TestExpectedConcurrent(t *testing.T) {
	fleet := load.Expected{}.Fleet()
	eps := make([]load.Endpoint, 8)
	for i := range eps {
		eps[i] = fleet.Join("", 0)
	}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for now := int64(0); now < 2_000_000; now += 1000 {
				ep := eps[(g+int(now/1000))%len(eps)]
				mark := ep.Start(now)
				if ep.Cost(now, g) < 0 || ep.Latency(now) < 0 {
					t.Error("less than nothing")
				}
				ep.End(now+int64(g), mark, load.Class(now/1000%4))
				if now%100_000 == 0 {
					extra := fleet.Join("", now)
					extra.End(now, extra.Start(now), load.Success)
					extra.Back(now)
					extra.Leave()
					eps[g].Leave()
					eps[g].(load.Rejoiner).Rejoin(now, now+1)
				}
			}
		})
	}
	all.Wait()
}
