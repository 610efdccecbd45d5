package lab

import (
	"fmt"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
	"github.com/belfry-go/belfry/load"
)

// A Demo is a set-up that is small enough to run on real servers, which belfry demo does. The lab runs the same in virtual time.
type Demo struct {
	Name string
	// About says what the servers do, in a sentence without its end.
	About string
	// Rate is how many requests a second come at random times.
	Rate int
	// Run is how long they come.
	Run     time.Duration
	Servers []DemoServer

	// The last servers, from number Odd on, are what the set-up is about, and OddName says what they are. Their share is measured among the
	// requests that are due in When.
	Odd     int
	OddName string
	When    sim.Span
	// Judged is what matters.
	Judged Judged
}

// A DemoServer is one of the servers of a [Demo].
type DemoServer struct {
	sim.Server
	// Label names it in a table; servers that are alike share theirs.
	Label string
	// Most is how long a request takes at most while all is well.
	Most time.Duration
}

// Judged is the figure that a [Demo] is about.
type Judged int

// What a Demo can be about. Less is better, but for Kept.
const (
	Tail   Judged = iota // the 99th percentile
	Stuck                // requests that take longer than StuckAfter
	Failed               // requests that fail
	Kept                 // the share that the odd server keeps
)

// StuckAfter is longer than any request of a [Demo] takes while all is well, but for the slowest servers of the spread.
const StuckAfter = 500 * time.Millisecond

// DefaultDemo is the name of the Demo that is run if no other is asked for.
const DefaultDemo = "spread"

// DemoRun is how long a Demo is run, if nothing else is said.
const DemoRun = 5 * time.Second

// DemoNames returns the names of all Demos.
func DemoNames() []string {
	var names []string
	for _, d := range Demos(DemoRun) {
		names = append(names, d.Name)
	}
	return names
}

// FindDemo returns the Demo called name, which runs for so long.
func FindDemo(name string, run time.Duration) (Demo, error) {
	for _, d := range Demos(run) {
		if d.Name == name {
			return d, nil
		}
	}
	return Demo{}, fmt.Errorf("must be one of %s, got %q", strings.Join(DemoNames(), ", "), name)
}

// Demos returns all of them, with their troubles in proportion to how long they run.
func Demos(run time.Duration) []Demo {
	d := demoTimes{run}
	all := []Demo{d.spread(), d.slow(), d.hang(), d.fastFail(), d.coldStart(), d.oneStuck()}
	for i := range all {
		all[i].Run = run
	}
	return all
}

// demoTimes makes Demos that run for a time.
type demoTimes struct{ run time.Duration }

func (d demoTimes) all() sim.Span { return sim.Span{From: 0, Until: d.run.Microseconds()} }

func (d demoTimes) middle() sim.Span {
	return sim.Span{From: d.run.Microseconds() / 4, Until: d.run.Microseconds() * 3 / 4}
}

// spans says from when to when in words.
func spans(s sim.Span) string {
	at := func(t int64) time.Duration { return (time.Duration(t) * time.Microsecond).Round(time.Millisecond) }
	return fmt.Sprintf("from %v to %v", at(s.From), at(s.Until))
}

// spread is that of the demo that comes with tower, but for latencies that are no whole numbers of milliseconds.
func (d demoTimes) spread() Demo {
	s := Demo{
		Name: "spread", Rate: 1000, Odd: 5, OddName: "slower half", When: d.all(), Judged: Tail,
		About: "each answer takes a random time, up to 1 ms at the fastest server and up to 1 s at the slowest",
	}
	for _, most := range []int{1, 5, 10, 10, 10, 100, 100, 100, 500, 1000} {
		s.Servers = append(s.Servers, DemoServer{
			Server: sim.Server{Latency: sim.Quantiles([]sim.Quantile{{At: 0, Latency: 0}, {At: 1, Latency: float64(most) * ms}})},
			Label:  fmt.Sprintf("up to %4d ms", most),
			Most:   time.Duration(most) * time.Millisecond,
		})
	}
	return s
}

func (d demoTimes) slow() Demo {
	w := sim.Window{Span: d.middle(), Slow: 10}
	return Demo{
		Name: "slow", Rate: 1000, Odd: 10, OddName: "slow server", When: w.Span, Judged: Stuck,
		About:   "each answer takes 163 to 200 ms, but ten times as long at one of the servers " + spans(w.Span),
		Servers: steady("slow", eleven(w), 200*time.Millisecond),
	}
}

func (d demoTimes) hang() Demo {
	w := sim.Window{Span: d.middle(), Hangs: true}
	return Demo{
		Name: "hang", Rate: 1000, Odd: 10, OddName: "hung server", When: w.Span, Judged: Stuck,
		About:   "each answer takes 163 to 200 ms, but one of the servers answers nothing " + spans(w.Span),
		Servers: steady("hangs", eleven(w), 200*time.Millisecond),
	}
}

func (d demoTimes) fastFail() Demo {
	servers := constant(10, 50)
	servers[9].Windows = []sim.Window{{Span: always, Fails: 1, FailsIn: ms}}
	return Demo{
		Name: "fast-fail", Rate: 1000, Odd: 9, OddName: "failing server", When: d.all(), Judged: Failed,
		About:   "each answer takes 50 ms, but one of the servers fails everything in 1 ms",
		Servers: steady("fails", servers, 50*time.Millisecond),
	}
}

func (d demoTimes) coldStart() Demo {
	cold := d.middle()
	servers := eleven(sim.Window{Span: cold, Slow: 5})
	servers[10].Here = []sim.Span{{From: cold.From, Until: sim.Never}}
	return Demo{
		Name: "cold-start", Rate: 1000, Odd: 10, OddName: "new server", When: cold, Judged: Stuck,
		About: "each answer takes 163 to 200 ms, but one of the servers joins late, and takes five times as long " +
			spans(cold),
		Servers: steady("new", servers, 200*time.Millisecond),
	}
}

func (d demoTimes) oneStuck() Demo {
	s := d.all()
	s.From = s.Until / 10
	servers := constant(10, 20)
	servers[9].Lost = []sim.Span{{From: s.From, Until: sim.Never}}
	return Demo{
		Name: "one-stuck", Rate: 200, Odd: 9, OddName: "server that lost one", When: s, Judged: Kept,
		About: fmt.Sprintf("each answer takes 20 ms, but after %v one of the servers loses the first request that it gets",
			(time.Duration(s.From) * time.Microsecond).Round(time.Millisecond)),
		Servers: steady("stuck", servers, 20*time.Millisecond),
	}
}

// steady labels servers of which the last is odd.
func steady(odd string, servers []sim.Server, most time.Duration) []DemoServer {
	var all []DemoServer
	for _, s := range servers {
		all = append(all, DemoServer{Server: s, Label: "steady", Most: most})
	}
	all[len(all)-1].Label = odd
	return all
}

// DemoFigures are what a Demo is about.
type DemoFigures struct {
	P50, P99 float64 // in ms
	OddShare float64
	Stuck    float64 // how many took longer than StuckAfter
	Failed   float64 // how many failed
}

// Simulate runs d in virtual time and returns the means over so many seeds.
func (d Demo) Simulate(metric load.Metric, seeds int) DemoFigures {
	var m DemoFigures
	for seed := range seeds {
		f := d.simulate(sim.WithMetric(d.Name, metric), uint64(seed)+1)
		m.P50 += f.P50 / float64(seeds)
		m.P99 += f.P99 / float64(seeds)
		m.OddShare += f.OddShare / float64(seeds)
		m.Stuck += f.Stuck / float64(seeds)
		m.Failed += f.Failed / float64(seeds)
	}
	return m
}

func (d Demo) simulate(p sim.Policy, seed uint64) DemoFigures {
	servers := make([]sim.Server, len(d.Servers))
	for i, s := range d.Servers {
		servers[i] = s.Server
	}
	all := sim.Run(sim.Config{Servers: servers, Rate: float64(d.Rate), Horizon: d.Run.Microseconds(), Policy: p, Seed: seed})
	good := sim.LatenciesOf(all, func(r sim.Request) bool { return r.Class == load.Success })
	return DemoFigures{
		P50:      good.At(0.5) / ms,
		P99:      good.At(0.99) / ms,
		OddShare: sim.Share(all, during(d.When), func(r sim.Request) bool { return int(r.Server) >= d.Odd }),
		Stuck:    (1 - good.Within(StuckAfter.Microseconds())) * float64(len(good)),
		Failed:   float64(len(all) - len(good)),
	}
}

// demo is all Demos as one scenario.
func demo() Scenario {
	s := Scenario{
		Name: "demo", Unit: "ms", Policies: []string{"random", "in-flight", "peak-ewma-evidence", sim.Default},
		About: "what belfry demo runs on real servers",
	}
	for _, d := range Demos(DemoRun) {
		s.Parts = append(s.Parts, Part{Name: d.Name, run: func(p sim.Policy, seed uint64) Outcome {
			f := d.simulate(p, seed)
			return Outcome{Figures: []Figure{{"p50", f.P50}, {"p99", f.P99}, {"odd_share", f.OddShare}, {"stuck", f.Stuck}, {"failed", f.Failed}}}
		}})
	}
	return s
}
