package load_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/load"
)

func TestConstant(t *testing.T) {
	fleet := load.Constant(func(key string) float64 { return float64(len(key)) }).Fleet()
	if fleet.Timed() {
		t.Error("a constant needs no clock")
	}
	ep := fleet.Join("key", 0)
	ep.End(5, ep.Start(0), load.Failure)
	if got := ep.Cost(9, 7); got != 3 {
		t.Errorf("cost %v, want 3", got)
	}
	if got := load.Constant(nil).Fleet().Join("key", 0).Cost(0, 7); got != 0 {
		t.Errorf("a nil Constant costs %v, want 0", got)
	}
}

func TestPending(t *testing.T) {
	fleet := load.Pending{}.Fleet()
	if fleet.Timed() {
		t.Error("a count needs no clock")
	}
	ep := fleet.Join("key", 0)
	ep.Start(0) // counting is up to the caller
	for _, held := range []int{0, 1, 2} {
		if got := ep.Cost(0, held); got != float64(held) {
			t.Errorf("cost of %d is %v", held, got)
		}
	}
	if got := ep.Latency(0); got != 0 {
		t.Errorf("latency %v, want 0", got)
	}
}

func TestClassify(t *testing.T) {
	rejected := &belfry.Rejection{Layer: "limit", Err: belfry.ErrNotReady}
	for _, c := range []struct {
		kind belfry.Kind
		err  error
		want load.Class
	}{
		{belfry.Success, nil, load.Success},
		{belfry.Success, errors.New("not found"), load.Success},
		{belfry.Failure, errors.New("broken"), load.Failure},
		{belfry.Failure, nil, load.Failure},
		{belfry.Failure, rejected, load.Failure}, // a dial that failed
		{belfry.Ignored, context.Canceled, load.Cancelled},
		{belfry.Ignored, nil, load.Cancelled},
		{belfry.Ignored, rejected, load.Rejected},
		{belfry.Ignored, fmt.Errorf("wrapped: %w", rejected), load.Rejected},
	} {
		if got := load.Classify(c.kind, c.err); got != c.want {
			t.Errorf("Classify(%v, %v) is %v, want %v", c.kind, c.err, got, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		metric load.Metric
		want   string
	}{
		{load.PeakEWMA{}, ""},
		{load.PeakEWMA{Decay: time.Nanosecond, Initial: time.Hour}, ""},
		{load.PeakEWMA{Decay: -1}, "load: decay must not be negative, got -1ns"},
		{load.PeakEWMA{Initial: -time.Second}, "load: initial must not be negative, got -1s"},
		{load.Pending{}, ""},
		{load.Constant(nil), ""},
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

// A measured is one endpoint whose time and holders the test counts.
type measured struct {
	load.Endpoint
	now  int64
	held int
}

func join(fleet load.Fleet, now int64) *measured {
	return &measured{Endpoint: fleet.Join("key", now), now: now}
}

func alone(m load.PeakEWMA) *measured { return join(m.Fleet(), 0) }

func (m *measured) pass(d time.Duration) { m.now += d.Microseconds() }

// cost returns the cost as a duration.
func (m *measured) cost() time.Duration {
	return time.Duration(math.Round(m.Cost(m.now, m.held) * float64(time.Microsecond)))
}

func (m *measured) call() (end func(load.Class)) {
	mark := m.Start(m.now)
	m.held++
	return func(class load.Class) {
		m.End(m.now, mark, class)
		m.held--
	}
}

// after makes a call that takes so long.
func (m *measured) after(d time.Duration, class load.Class) {
	end := m.call()
	m.pass(d)
	end(class)
}

func (m *measured) wantBetween(t *testing.T, low, high time.Duration) {
	t.Helper()
	if got := m.cost(); got <= low || got >= high {
		t.Fatalf("at %d µs the cost is %v, want between %v and %v", m.now, got, low, high)
	}
}

func (m *measured) want(t *testing.T, want time.Duration) {
	t.Helper()
	if got := m.cost(); got != want {
		t.Fatalf("at %d µs the cost is %v, want %v", m.now, got, want)
	}
}

const ms = time.Millisecond

func TestPeakEWMA(t *testing.T) {
	t.Run("LD3 what no call has confirmed decays", func(t *testing.T) {
		ep := alone(load.PeakEWMA{Initial: 10 * ms, Decay: time.Second})
		ep.want(t, 10*ms)
		ep.pass(100 * ms)
		ep.wantBetween(t, 9*ms, 10*ms)
		ep.pass(100 * ms)
		ep.wantBetween(t, 8*ms, 9*ms)
	})
	t.Run("LD4 calls and peaks", func(t *testing.T) {
		ep := alone(load.PeakEWMA{Initial: 20 * ms, Decay: time.Second})
		ep.want(t, 20*ms)
		ep.pass(100 * ms)
		first := ep.call()
		ep.wantBetween(t, 20*ms, time.Hour)
		ep.pass(100 * ms)
		second := ep.call()
		ep.wantBetween(t, 40*ms, time.Hour)
		ep.pass(100 * ms)
		first(load.Success)
		ep.want(t, 400*ms)
		ep.pass(100 * ms)
		second(load.Success)
		ep.want(t, 200*ms)
		ep.pass(time.Second)
		ep.wantBetween(t, 0, 100*ms)
		ep.pass(10 * time.Second)
		ep.wantBetween(t, 0, 100*time.Microsecond)
	})
	t.Run("S12 D4 rises at once, falls slowly, and reading changes nothing", func(t *testing.T) {
		run := func(read bool) time.Duration {
			ep := alone(load.PeakEWMA{})
			ep.after(100*ms, load.Success)
			ep.want(t, 100*ms)
			ep.pass(5*time.Second - 10*ms)
			if read {
				for range 10 {
					ep.cost()
					ep.Latency(ep.now)
				}
			}
			ep.after(10*ms, load.Success)
			return ep.cost()
		}
		// The sample of 10 ms weighs 1 - e^-0.5, about 39 %.
		const fade = 0.60653066
		want := time.Duration(math.Round((100*fade+10*(1-fade))*1000)) * time.Microsecond
		for _, read := range []bool{false, true} {
			if got := run(read); got.Round(time.Microsecond) != want {
				t.Errorf("with reading %v the cost is %v, want %v", read, got, want)
			}
		}
	})
	t.Run("D1 a black hole does not get cheaper while it hangs", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		ep.after(20*ms, load.Success)
		ep.call()
		before := ep.cost()
		for ep.now < (9 * time.Second).Microseconds() {
			ep.pass(100 * ms)
			if after := ep.cost(); after < before {
				t.Fatalf("at %d µs the cost falls from %v to %v", ep.now, before, after)
			} else {
				before = after
			}
		}
	})
	t.Run("D3 a cancelled call is a lower bound", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		ep.after(5*time.Second, load.Success)
		ep.want(t, 5*time.Second)
		for range 1000 {
			before := ep.Cost(ep.now+20_000, 0)
			ep.after(20*ms, load.Cancelled)
			if after := ep.Cost(ep.now, 0); after < before {
				t.Fatalf("a call cancelled after 20 ms improves the cost from %v µs to %v µs", before, after)
			}
		}
		other := alone(load.PeakEWMA{})
		other.after(20*ms, load.Success)
		other.after(time.Second, load.Cancelled)
		other.want(t, time.Second)
	})
	t.Run("D3 a cancelled call does not answer for a newcomer", func(t *testing.T) {
		ep := alone(load.PeakEWMA{Initial: 30 * ms})
		ep.after(10*ms, load.Cancelled)
		ep.wantBetween(t, 29*ms, 30*ms)
		ep.after(100*ms, load.Cancelled)
		ep.want(t, 100*ms)
		ep.after(5*ms, load.Success)
		ep.wantBetween(t, 99*ms, 100*ms) // one answer does not undo that another would have taken longer
	})
	t.Run("D2 a failure costs what a success does, and is not expected to be the last", func(t *testing.T) {
		fleet := load.PeakEWMA{}.Fleet()
		for range 2 {
			join(fleet, 0).after(50*ms, load.Success)
		}
		ep := join(fleet, 0)
		ep.after(time.Millisecond, load.Failure)
		// The median of the fleet, exact to an eighth, times 1/p = 1 + 1/0.1.
		ep.wantBetween(t, 11*50*ms*7/8, 11*50*ms*101/100)
		ep.after(50*ms, load.Success)
		ep.wantBetween(t, 90*ms, 100*ms) // 1 + 1/1.1
	})
	t.Run("D2 a first call that fails at once costs what was expected of a success", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		ep.after(0, load.Failure)
		ep.want(t, 11*30*ms)
	})
	t.Run("D2 a failure does not make a slow endpoint cheaper", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		ep.after(time.Second, load.Success)
		before := ep.cost()
		ep.after(time.Millisecond, load.Failure)
		if after := ep.cost(); after < before*3/2 {
			t.Fatalf("the cost goes from %v to %v", before, after)
		}
	})
	t.Run("D2 a failure is forgotten like a latency", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		ep.after(10*ms, load.Failure)
		ep.pass(50 * time.Second)
		latency := ep.Latency(ep.now)
		ep.wantBetween(t, latency*105/100, latency*107/100) // 1 + e^-5/(0.1 + 0)
	})
	t.Run("D2 equal failures cancel out", func(t *testing.T) {
		fleet := load.PeakEWMA{}.Fleet()
		a, b := join(fleet, 0), join(fleet, 0)
		for range 100 {
			a.after(10*ms, load.Success)
			b.after(10*ms, load.Success)
			a.after(10*ms, load.Failure)
			b.after(10*ms, load.Failure)
		}
		if a.cost() != b.cost() {
			t.Fatalf("%v and %v", a.cost(), b.cost())
		}
		a.wantBetween(t, 19*ms, 21*ms) // two attempts to a success
	})
	t.Run("D2 old successes do not excuse a failure", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		for range 100 {
			ep.after(10*ms, load.Success)
		}
		ep.pass(100 * time.Second)
		ep.after(10*ms, load.Failure)
		// 1 + 1/(0.1 + 100·e^-10), of the guess that is the fleet's median: its own
		ep.wantBetween(t, 85*ms, 107*ms)
	})
	t.Run("decays as it should from the first moment on", func(t *testing.T) {
		for _, d := range []time.Duration{ms, 10 * ms, 100 * ms, 156 * ms, 157 * ms, time.Second} {
			ep := alone(load.PeakEWMA{})
			ep.after(100*time.Second, load.Success)
			ep.pass(d)
			want := 100e6 * math.Exp(-d.Seconds()/10)
			if got := ep.Cost(ep.now, 0); math.Abs(got/want-1) > 1e-8 {
				t.Errorf("after %v the cost is %v, want %v", d, got, want)
			}
		}
	})
	t.Run("a rejection is no sample", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		ep.after(20*ms, load.Success)
		before := ep.Cost(ep.now+ms.Microseconds(), 0)
		ep.after(ms, load.Rejected)
		if after := ep.Cost(ep.now, 0); after != before {
			t.Fatalf("the cost goes from %v to %v", before, after)
		}
	})
	t.Run("D5 the count of requests matters however small the average", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		ep.after(0, load.Success)
		ep.pass(3 * time.Hour)
		ep.want(t, time.Microsecond)
		ep.held = 9
		ep.want(t, 10*time.Microsecond)
	})
}

func TestPeakEWMAEvidence(t *testing.T) {
	t.Run("is twice the mean age", func(t *testing.T) {
		ep := alone(load.PeakEWMA{Initial: ms})
		ep.call()
		ep.pass(100 * ms)
		ep.want(t, 2*200*ms)
		ep.call()
		ep.want(t, 3*100*ms)
		ep.pass(50 * ms)
		ep.want(t, 3*200*ms)
	})
	t.Run("is not what was overtaken", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		ep.call() // stuck for ever, in generation 0
		ep.pass(time.Second)
		ep.after(20*ms, load.Success) // of generation 0: what is older may be overtaken next
		ep.wantBetween(t, 2*time.Second, 6*time.Second)
		ep.after(20*ms, load.Success) // of generation 1: the stuck one is overtaken
		ep.wantBetween(t, 39*ms, 41*ms)
	})
	t.Run("is not overtaken by what began before it", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		var ends []func(load.Class)
		for range 10 {
			ends = append(ends, ep.call())
		}
		ep.pass(ms)
		ep.call()
		for _, end := range ends { // ten of one generation end: that is one generation more, not ten
			end(load.Success)
		}
		ep.pass(time.Second)
		ep.wantBetween(t, 3*time.Second, 5*time.Second)
	})
	t.Run("does not end with a failure, a cancel or a rejection", func(t *testing.T) {
		for _, class := range []load.Class{load.Failure, load.Cancelled, load.Rejected} {
			ep := alone(load.PeakEWMA{})
			ep.call()
			ep.pass(time.Second)
			for range 5 {
				ep.after(ms, class)
			}
			if got := ep.cost(); got < 4*time.Second {
				t.Errorf("after a %v the cost is %v, want at least 4s", class, got)
			}
		}
	})
	t.Run("is left out when nothing was started for 10 s", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		ep.after(20*ms, load.Success)
		ep.call()
		ep.pass(10*time.Second - ms)
		ep.wantBetween(t, 39*time.Second, 41*time.Second)
		ep.pass(ms)
		ep.wantBetween(t, 0, 40*ms)
		ep.call() // one pick
		ep.wantBetween(t, 29*time.Second, 31*time.Second)
	})
	t.Run("is left out when nothing was started for 20 averages", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		ep.after(time.Second, load.Success)
		ep.call()
		ep.pass(20*time.Second - ms)
		ep.wantBetween(t, 79*time.Second, 81*time.Second)
		ep.pass(ms)
		ep.wantBetween(t, 0, 2*time.Second)
	})
	t.Run("is empty when all calls are back, in any order", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		var ends []func(load.Class)
		for i := range 60 {
			ends = append(ends, ep.call())
			ep.pass(ms)
			if i%3 == 2 {
				ends[i-1](load.Class(i / 3 % 4))
				ends[i-1] = nil
			}
		}
		for _, end := range ends {
			if end != nil {
				end(load.Success)
			}
		}
		before := ep.cost()
		ep.pass(time.Second)
		if got := ep.cost(); got > before {
			t.Fatalf("the cost grows to %v with nothing in flight", got)
		}
	})
}

func TestPeakEWMANewcomer(t *testing.T) {
	settled := func(fleet load.Fleet, latencies ...time.Duration) (now int64) {
		for _, l := range latencies {
			ep := join(fleet, now)
			ep.after(l, load.Success)
			now = ep.now
		}
		return now
	}
	t.Run("starts from the median of its peers", func(t *testing.T) {
		fleet := load.PeakEWMA{}.Fleet()
		now := settled(fleet, 10*ms, 20*ms, 20*ms, 20*ms, time.Second)
		ep := join(fleet, now)
		ep.wantBetween(t, 20*ms*7/8, 20*ms+1)
	})
	t.Run("follows the median until it has answered", func(t *testing.T) {
		fleet := load.PeakEWMA{Initial: time.Second}.Fleet()
		ep := join(fleet, 0)
		ep.want(t, time.Second)
		settled(fleet, ms)
		ep.wantBetween(t, 0, ms+1)
		ep.after(5*ms, load.Success)
		ep.want(t, 5*ms)
		settled(fleet, time.Second, time.Second, time.Second)
		ep.want(t, 5*ms)
	})
	t.Run("is charged ten times for a second request", func(t *testing.T) {
		fleet := load.PeakEWMA{}.Fleet()
		now := settled(fleet, 20*ms)
		ep := join(fleet, now)
		first := ep.cost()
		end := ep.call()
		if got := ep.cost(); got != 20*first {
			t.Fatalf("with one in flight it costs %v, want %v", got, 20*first)
		}
		end(load.Success)
		ep.call()
		if got := ep.cost(); got > 40*ms {
			t.Fatalf("after its first answer it costs %v with one in flight", got)
		}
	})
	t.Run("is not charged for long", func(t *testing.T) {
		for _, c := range []struct{ median, until time.Duration }{{20 * ms, time.Second}, {600 * ms, 6 * time.Second}} {
			fleet := load.PeakEWMA{}.Fleet()
			ep := join(fleet, settled(fleet, c.median))
			ep.pass(5 * time.Second) // the time counts from its first request
			ep.call()
			ep.pass(c.until * 7 / 8)
			ep.wantBetween(t, 39*c.until*7/8, 41*c.until*7/8) // twice the age, two requests, ten times
			ep.pass(c.until / 8)
			ep.wantBetween(t, 39*c.until/10, 41*c.until/10)
		}
	})
	t.Run("is not charged while nothing is in flight there", func(t *testing.T) {
		fleet := load.PeakEWMA{}.Fleet()
		ep := join(fleet, settled(fleet, 20*ms))
		before := ep.cost()
		ep.after(0, load.Rejected)
		ep.want(t, before)
	})
	t.Run("takes the lower of two medians", func(t *testing.T) {
		fleet := load.PeakEWMA{}.Fleet()
		ep := join(fleet, settled(fleet, 10*ms, time.Second))
		ep.wantBetween(t, 8*ms, 10*ms)
	})
	t.Run("bears any latency", func(t *testing.T) {
		fleet := load.PeakEWMA{}.Fleet()
		ep := join(fleet, settled(fleet, 1000*time.Hour))
		ep.wantBetween(t, 15*time.Hour, 20*time.Hour)
		ep = join(load.PeakEWMA{}.Fleet(), 0)
		ep.pass(time.Minute)
		ep.after(-time.Second, load.Success) // several goroutines have read the clock
		ep.want(t, time.Microsecond)
		if got := ep.Latency(ep.now); got < 0 {
			t.Errorf("latency %v", got)
		}
	})
	t.Run("is not charged when all are new", func(t *testing.T) {
		ep := alone(load.PeakEWMA{})
		ep.want(t, 30*ms)
		ep.call()
		ep.want(t, 60*ms)
	})
	t.Run("is tried in the end, however quick the others are", func(t *testing.T) {
		fleet := load.PeakEWMA{}.Fleet()
		ep := join(fleet, settled(fleet, 20*ms))
		ep.pass(time.Minute)
		ep.wantBetween(t, 0, ms)
	})
}

func TestPeakEWMALeave(t *testing.T) {
	fleet := load.PeakEWMA{Initial: 30 * ms}.Fleet()
	gone := join(fleet, 0)
	gone.after(time.Second, load.Success)
	late := gone.call()
	gone.Leave()
	join(fleet, gone.now).want(t, 30*ms) // as if nobody had answered
	late(load.Success)
	join(fleet, gone.now).want(t, 30*ms)
	gone.Leave() // again: no harm
	join(fleet, gone.now).after(ms, load.Success)
	join(fleet, gone.now).wantBetween(t, 0, ms+1)
}

// TestPeakEWMAConcurrent: nothing of a call is left when it has come back, however many there are at once.
func TestPeakEWMAConcurrent(t *testing.T) {
	fleet := load.PeakEWMA{}.Fleet()
	ep := fleet.Join("key", 0)
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range int64(500) {
				mark := ep.Start(i)
				if cost := ep.Cost(i, 1); !(cost >= 2 && cost < 1e9) {
					t.Errorf("cost %v", cost)
				}
				ep.End(i+10, mark, load.Class(caller%4))
			}
		})
	}
	callers.Wait()
	before := ep.Cost(1000, 0)
	if after := ep.Cost(1_000_000, 0); after > before {
		t.Errorf("the cost rises from %v to %v with nothing in flight", before, after)
	}
}
