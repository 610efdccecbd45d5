package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/load"
)

const unit = float64(100 * Millisecond)

func queues(n int) []Server {
	servers := make([]Server, n)
	for i := range servers {
		servers[i] = Server{Latency: Exponential(unit), Queue: true}
	}
	return servers
}

// busy is a fleet whose every figure depends on every choice.
func busy(p Policy, seed uint64) Config {
	return Config{Servers: queues(10), Clients: 3, Rate: 80, Horizon: 60 * Second, Policy: p, Seed: seed}
}

func find(t *testing.T, name string) Policy {
	t.Helper()
	p, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheSeedDeterminesARun(t *testing.T) {
	for _, p := range Policies() {
		t.Run(p.Name, func(t *testing.T) {
			a, b, other := Run(busy(p, 1)), Run(busy(p, 1)), Run(busy(p, 2))
			if !slices.Equal(a, b) {
				t.Error("two runs with one seed differ")
			}
			if slices.Equal(a, other) {
				t.Error("two runs with two seeds do not differ")
			}
		})
	}
}

func TestAllPoliciesMeetTheSameRequests(t *testing.T) {
	arrivals := func(p Policy) (at []int64) {
		for _, r := range Run(busy(p, 1)) {
			at = append(at, r.At)
		}
		return at
	}
	want := arrivals(Policies()[0])
	for _, p := range Policies()[1:] {
		if !slices.Equal(arrivals(p), want) {
			t.Errorf("under %s requests come at other times", p.Name)
		}
	}
}

// TestTheCodeUnderTestIsThatOfBalancers: what changes there changes the figures here.
func TestTheCodeUnderTestIsThatOfBalancers(t *testing.T) {
	run := func(p Policy) []Request { return Run(busy(p, 1)) }
	if !slices.Equal(run(find(t, Default)), run(WithMetric("own", DefaultMetric(0)))) {
		t.Error("the default is not the metric of package load")
	}
	if !slices.Equal(run(find(t, "in-flight")), run(WithMetric("own", load.Pending{}))) {
		t.Error("in-flight is not load.Pending")
	}
	if !slices.Equal(run(find(t, "default/1s")), run(WithMetric("own", DefaultMetric(time.Second)))) {
		t.Error("default/1s is not that metric with a decay of a second")
	}
	if slices.Equal(run(find(t, Default)), run(find(t, "default/1s"))) {
		t.Error("another decay changes nothing")
	}
	// A metric that does the opposite must show.
	worst := LatenciesOf(run(WithMetric("worst", opposite{})), nil).Mean()
	if best := LatenciesOf(run(find(t, "in-flight")), nil).Mean(); worst < 2*best {
		t.Errorf("to prefer what is busy takes %v, the opposite %v", worst, best)
	}
}

// opposite prefers what has more in flight.
type opposite struct{ load.Pending }

func (opposite) Fleet() load.Fleet { return oppositeFleet{load.Pending{}.Fleet()} }

type oppositeFleet struct{ load.Fleet }

func (f oppositeFleet) Join(key string, now int64) load.Endpoint {
	return oppositeEndpoint{f.Fleet.Join(key, now)}
}

type oppositeEndpoint struct{ load.Endpoint }

func (e oppositeEndpoint) Cost(now int64, held int) float64 { return -e.Endpoint.Cost(now, held) }

// TestOneQueue: where one is drawn at random, each queue is M/M/1, with a mean time in system of 1 / (1 - load), distributed
// exponentially.
func TestOneQueue(t *testing.T) {
	for _, at := range []float64{0.3, 0.5, 0.7} {
		all := Run(Config{
			Servers: queues(10), Rate: at * 10 * 1e6 / unit, Horizon: 4000 * int64(unit), Policy: find(t, "random"), Seed: 1,
		})
		l := LatenciesOf(all[len(all)/10:], nil)
		want := 1 / (1 - at)
		near(t, "mean", l.Mean()/unit, want, 0.05)
		near(t, "median", l.At(0.5)/unit, want*math.Ln2, 0.05)
		near(t, "99 %", l.At(0.99)/unit, want*math.Log(100), 0.1)
	}
}

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*want {
		t.Errorf("%s is %v, want %v within %v %%", what, got, want, share*100)
	}
}

func TestLatenciesAreDrawnAsAsked(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for name, c := range map[string]struct {
		draw               Latency
		mean, least, worst float64
	}{
		"exponential": {Exponential(100), 100, 0, 5000},
		"constant":    {Constant(100), 100, 100, 100},
		"up to":       {UpTo(10), 5500, 1000, 10_000},
		"quantiles":   {Quantiles([]Quantile{{0, 10}, {0.5, 20}, {1, 100}}), 37.5, 10, 100},
	} {
		t.Run(name, func(t *testing.T) {
			sum := 0.0
			const n = 100_000
			for range n {
				v := c.draw(random)
				if sum += v; v < c.least || v > c.worst {
					t.Fatalf("drew %v, want %v to %v", v, c.least, c.worst)
				}
			}
			near(t, "mean", sum/n, c.mean, 0.02)
		})
	}
}

// one is a server that takes 10 ms.
func one(w ...Window) server { return server{Server: Server{Latency: Constant(10_000), Windows: w}} }

func TestTroubleOfAServer(t *testing.T) {
	window := func(w Window) Window {
		w.Span = Span{100_000, 200_000}
		return w
	}
	for _, c := range []struct {
		name  string
		w     Window
		came  int64
		ends  int64
		class load.Class
	}{
		{"well before", window(Window{Slow: 10}), 99_999, 109_999, load.Success},
		{"slow", window(Window{Slow: 10}), 100_000, 200_000, load.Success},
		{"well after", window(Window{Slow: 10}), 200_000, 210_000, load.Success},
		{"fails", window(Window{Fails: 1, FailsIn: 1000}), 150_000, 151_000, load.Failure},
		{"hangs later", window(Window{Hangs: true}), 90_000, 100_000, load.Success},
		{"hangs meanwhile", window(Window{Hangs: true}), 95_000, 205_000, load.Success},
		{"hangs from the start", window(Window{Hangs: true}), 150_000, 210_000, load.Success},
		{"hangs no more", window(Window{Hangs: true}), 200_000, 210_000, load.Success},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := one(c.w)
			ends, class := s.serve(c.came, rand.New(rand.NewPCG(1, 1)))
			if ends != c.ends || class != c.class {
				t.Errorf("ends at %d, %v, want %d, %v", ends, class, c.ends, c.class)
			}
		})
	}
}

func TestAQueueIsServedInOrder(t *testing.T) {
	s := one()
	s.Queue = true
	random := rand.New(rand.NewPCG(1, 1))
	for i, want := range []int64{10_000, 20_000, 30_000} {
		if ends, _ := s.serve(int64(i), random); ends != want {
			t.Errorf("request %d ends at %d, want %d", i, ends, want)
		}
	}
	if ends, _ := s.serve(50_000, random); ends != 60_000 {
		t.Errorf("of an empty queue one ends at %d, want 60000", ends)
	}
}

func TestALostRequestIsOne(t *testing.T) {
	servers := []Server{{Latency: Constant(1000), Lost: []Span{{Second, Never}}}}
	all := Run(Config{Servers: servers, Rate: 100, Even: true, Horizon: 3 * Second, Policy: find(t, "random"), Seed: 1})
	lost := 0
	for _, r := range all {
		if !r.Answered() {
			if lost++; r.At != Second {
				t.Errorf("the request at %d is lost, want that at %d", r.At, Second)
			}
		}
	}
	if lost != 1 {
		t.Errorf("%d are lost, want 1", lost)
	}
}

func TestConcurrencyIsKept(t *testing.T) {
	servers := []Server{{Latency: Constant(1000)}, {Latency: Constant(3000)}}
	all := Run(Config{Servers: servers, Concurrency: 7, Requests: 1000, Policy: find(t, "in-flight"), Seed: 1})
	if len(all) != 1000 {
		t.Fatalf("%d requests, want 1000", len(all))
	}
	for at := int64(0); at < all[len(all)-1].At; at += 500 {
		flying := 0
		for _, r := range all {
			if r.At <= at && at < r.At+r.Latency {
				flying++
			}
		}
		if flying != 7 {
			t.Fatalf("%d are in flight at %d, want 7", flying, at)
		}
	}
}

func TestCallersLeave(t *testing.T) {
	servers := []Server{{Latency: Constant(float64(Second))}}
	for _, r := range Run(Config{Servers: servers, Rate: 10, Horizon: Second, Timeout: 5000, Policy: find(t, Default), Seed: 1}) {
		if r.Latency != 5000 || r.Class != load.Cancelled || r.Good() {
			t.Fatalf("%+v, want one that was left after 5 ms", r)
		}
	}
}

func TestServersComeAndGo(t *testing.T) {
	servers := []Server{
		{Latency: Constant(1000), Here: []Span{{0, 2 * Second}, {4 * Second, Never}}},
		{Latency: Constant(1000), Here: []Span{{Second, 3 * Second}}},
	}
	for _, p := range Policies() {
		for _, r := range Run(Config{Servers: servers, Clients: 2, Rate: 500, Horizon: 5 * Second, Policy: p, Seed: 1}) {
			var want []int32
			for i, s := range servers {
				if slices.ContainsFunc(s.Here, func(h Span) bool { return h.Has(r.At) }) {
					want = append(want, int32(i))
				}
			}
			if want == nil {
				want = []int32{-1}
			}
			if !slices.Contains(want, r.Server) {
				t.Fatalf("%s: at %d a request went to %d, want one of %v", p.Name, r.At, r.Server, want)
			}
		}
	}
}

func TestEventsComeInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		var e events
		var want []event
		for i := range random.IntN(200) {
			at := random.Int64N(50)
			e.push(at, int32(i))
			want = append(want, event{at, uint32(i + 1), int32(i)})
		}
		slices.SortFunc(want, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
		for _, w := range want {
			if got := e.pop(); got != w {
				t.Fatalf("%v came, want %v", got, w)
			}
		}
	}
}

func TestFindRefuses(t *testing.T) {
	for _, name := range []string{"", "nonsense", "in-flight/1s", "default/", "default/0s", "default/-1s", "default/x", "default/1"} {
		if p, err := Find(name); err == nil {
			t.Errorf("%q is taken for %q", name, p.Name)
		}
	}
}

func TestClassic(t *testing.T) {
	ep := Classic{Decay: time.Second}.Fleet().Join("", 0)
	if got := ep.Cost(0, 0); got != 0 {
		t.Errorf("unknown and idle: %v, want 0", got)
	}
	if got := ep.Cost(0, 2); got != unknown+2 {
		t.Errorf("unknown with two in flight: %v", got)
	}
	ep.End(1000, load.Mark{}, load.Success)
	near(t, "a sample", ep.Cost(1000, 0), 1000, 1e-9)
	near(t, "with two in flight", ep.Cost(1000, 2), 3000, 1e-9)
	near(t, "a decay later, whatever is in flight", ep.Cost(1000+Second, 1), 2*1000/math.E, 1e-9)
	ep.End(1000+Second, load.Mark{Start: Second}, load.Failure)
	near(t, "a quick failure is a peak like any other", ep.Cost(1000+Second, 0), 1000, 1e-9)

	strict := Classic{Decay: time.Second, Penalty: 5 * time.Second}.Fleet().Join("", 0)
	strict.End(1000, load.Mark{}, load.Failure)
	near(t, "a failure with a penalty", strict.Cost(1000, 0), 5e6, 1e-9)
}

func TestLatenciesOf(t *testing.T) {
	l := LatenciesOf([]Request{{Latency: 30}, {Latency: 10}, {Latency: 2 * Never}, {Latency: 20}}, nil)
	if got := l.Mean(); got != 20 {
		t.Errorf("mean %v, want 20", got)
	}
	for p, want := range map[float64]float64{0: 10, 0.25: 10, 0.5: 20, 0.75: 30, 1: float64(Never)} {
		if got := l.At(p); got != want {
			t.Errorf("at %v %v, want %v", p, got, want)
		}
	}
	if got := l.Within(20); got != 0.5 {
		t.Errorf("%v within 20, want 0.5", got)
	}
}

func TestOutage(t *testing.T) {
	o := Outage{Callers: 3, Rate: 200, Until: 20 * Second, Fails: 0, Took: Millisecond, Seed: 1}
	storm := o
	storm.Unlimited = true
	// A request that nobody bounds is sent three times by each of three.
	last := storm.Run(Second)
	near(t, "without a budget", float64(last[2].Attempts)/float64(last[0].Requests), 27, 0.05)
	// The reserve is 10 a second: of 200 a second that is 5 %.
	bounded := o.Run(10 * Second)
	for i, tally := range bounded {
		if ratio := float64(tally.Attempts) / float64(tally.Requests); ratio > 1.06 || ratio < 1 {
			t.Errorf("caller %d sends %v attempts per request", i, ratio)
		}
	}
	if ratio := float64(bounded[2].Attempts) / float64(bounded[0].Requests); ratio > 1.1 {
		t.Errorf("all three together make %v of one", ratio)
	}
	o.Fails = Never
	for i, tally := range o.Run(0) {
		if tally.Attempts != tally.Requests || tally.Requests == 0 {
			t.Errorf("caller %d retries what is good: %+v", i, tally)
		}
	}
}

func TestBallsAreKeptAndTakenOut(t *testing.T) {
	for _, n := range Balls(find(t, "in-flight"), 30, 10, 50, 1) {
		if n < 3 || n > 5 {
			t.Fatalf("of 30 balls in 10 bins the fullest has %d", n)
		}
	}
	sum := 0
	for _, n := range Picks(find(t, Default), 7, 1000, 1) {
		sum += n
	}
	if sum != 1000 {
		t.Errorf("%d picks, want 1000", sum)
	}
}

// TestTheDefaultIsThatOfPackageBalance: its documentation names the metric.
func TestTheDefaultIsThatOfPackageBalance(t *testing.T) {
	source, err := os.ReadFile("../../../../../balance/config.go")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("c.Load = %T{}", DefaultMetric(0)); !strings.Contains(string(source), want) {
		t.Errorf("package balance does not say %q", want)
	}
}
