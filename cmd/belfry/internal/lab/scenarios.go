package lab

import (
	"math"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
	"github.com/belfry-go/belfry/load"
)

// Scenarios returns all of them.
func Scenarios() []Scenario {
	return append([]Scenario{
		balls(), idle(), supermarket(),
		slowMiddle(), tower76(), fastFail(), grey(), halfOut(),
		fleetEqual(), fleetFour(), fleetHalf(), fleetTenth(),
		hang(), oneStuck(), streams(),
		coldStart(), flapping(), rollingRestart(), flicker(), warm(), vip(), retryAfter(), outage(), adaptive(), yourOwn(), demo(),
	}, placedScenarios()...)
}

// usual are the policies that most scenarios compare.
var usual = []string{
	"random", "round-robin", "full-scan", "in-flight", "in-flight-replacement", "peak-ewma", "peak-ewma-penalty", sim.Default,
}

const (
	ms     = float64(sim.Millisecond)
	second = sim.Second
	// unit is the mean service time of the fleets: the default decay is a hundred of them.
	unit = 100 * ms
)

// recorded is the latency that Finagle's simulator takes from a recording: these quantiles are published, and chosen in between so
// that mean and deviation are as published too.
var recorded = sim.Quantiles([]sim.Quantile{
	{At: 0, Latency: 162.8 * ms},
	{At: 0.5, Latency: 167.5 * ms},
	{At: 0.75, Latency: 171 * ms},
	{At: 0.95, Latency: 181.7 * ms},
	{At: 0.99, Latency: 192.3 * ms},
	{At: 1, Latency: 200 * ms},
})

// eleven is eleven servers with that latency, the last of which has trouble.
func eleven(trouble ...sim.Window) []sim.Server {
	servers := make([]sim.Server, 11)
	for i := range servers {
		servers[i].Latency = recorded
	}
	servers[10].Windows = trouble
	return servers
}

func middle(w sim.Window) sim.Window {
	w.Span = sim.Span{From: 15 * second, Until: 45 * second}
	return w
}

func slowMiddle() Scenario {
	return Scenario{
		Name: "slow-middle", Unit: "ms", Policies: usual,
		Judged: "within_1s", Higher: true, Missing: true,
		About: "one of eleven servers is ten times slower for the middle half of a minute",
		Parts: []Part{{run: func(p sim.Policy, seed uint64) Outcome {
			w := middle(sim.Window{Slow: 10})
			all := sim.Run(sim.Config{Servers: eleven(w), Rate: 1000, Even: true, Horizon: 60 * second, Policy: p, Seed: seed})
			l := sim.LatenciesOf(all, nil)
			return Outcome{
				Figures: []Figure{
					{"within_1s", l.Within(second)},
					{"p50", l.At(0.5) / ms},
					{"p95", l.At(0.95) / ms},
					{"p99", l.At(0.99) / ms},
					{"p999", l.At(0.999) / ms},
					{"slow_share", sim.Share(all, during(w.Span), to(10))},
				},
				Curve: curve(l, ms),
			}
		}}},
	}
}

func tower76() Scenario {
	return Scenario{
		Name: "tower-76", Unit: "ms", Policies: []string{"round-robin", "in-flight", "peak-ewma", sim.Default},
		Judged: "p99",
		About:  "ten servers up to 1, 10, 100 or 1000 ms, and always so many requests in flight, as in tower's example",
		Parts: []Part{
			{Name: "50", run: spread(50, 50_000, 1, 10, 10, 10, 10, 100, 100, 100, 100, 1000)},
			{Name: "500", run: spread(500, 100_000, 1, 5, 10, 10, 10, 100, 100, 100, 500, 1000)},
		},
	}
}

// spread is servers whose latency is up to most ms each.
func spread(concurrency, requests int, most ...int) func(sim.Policy, uint64) Outcome {
	return func(p sim.Policy, seed uint64) Outcome {
		servers := make([]sim.Server, len(most))
		for i, m := range most {
			servers[i].Latency = sim.UpTo(m)
		}
		all := sim.Run(sim.Config{Servers: servers, Concurrency: concurrency, Requests: requests, Policy: p, Seed: seed})
		last := int64(0)
		for _, r := range all {
			last = max(last, r.At+r.Latency)
		}
		o := Outcome{Figures: []Figure{{"seconds", float64(last) / float64(second)}}}
		l := sim.LatenciesOf(all, nil)
		for _, q := range []struct {
			name string
			at   float64
		}{{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}} {
			o.Figures = append(o.Figures, Figure{q.name, l.At(q.at) / ms})
		}
		o.Curve = curve(l, ms)
		return o
	}
}

func hang() Scenario {
	return Scenario{
		Name: "hang", Unit: "ms", Policies: usual,
		Judged: "stuck",
		About:  "one of eleven servers answers nothing for the middle half of a minute",
		Parts: []Part{{run: func(p sim.Policy, seed uint64) Outcome {
			w := middle(sim.Window{Hangs: true})
			all := sim.Run(sim.Config{Servers: eleven(w), Rate: 1000, Even: true, Horizon: 60 * second, Policy: p, Seed: seed})
			l := sim.LatenciesOf(all, nil)
			return Outcome{
				Figures: []Figure{
					{"stuck", (1 - l.Within(second)) * float64(len(l))},
					{"p99", l.At(0.99) / ms},
					{"p999", l.At(0.999) / ms},
					{"hung_share", sim.Share(all, during(w.Span), to(10))},
				},
				Curve: curve(l, ms),
			}
		}}},
	}
}

func fastFail() Scenario {
	return Scenario{
		Name: "fast-fail", Unit: "ms", Policies: usual,
		Judged: "failed_after_1s",
		About:  "of ten servers that take 50 ms one fails everything in 1 ms",
		Parts: []Part{{run: func(p sim.Policy, seed uint64) Outcome {
			servers := constant(10, 50)
			servers[0].Windows = []sim.Window{{Span: always, Fails: 1, FailsIn: ms}}
			all := sim.Run(sim.Config{Servers: servers, Rate: 1000, Horizon: 120 * second, Policy: p, Seed: seed})
			return Outcome{Figures: []Figure{
				{"failed", sim.Share(all, nil, failed)},
				{"failed_after_1s", sim.Share(all, from(second), failed)},
			}}
		}}},
	}
}

var always = sim.Span{From: 0, Until: sim.Never}

func constant(n int, latency float64) []sim.Server {
	servers := make([]sim.Server, n)
	for i := range servers {
		servers[i].Latency = sim.Constant(latency * ms)
	}
	return servers
}

func to(server int32) func(sim.Request) bool {
	return func(r sim.Request) bool { return r.Server == server }
}

func during(span sim.Span) func(sim.Request) bool {
	return func(r sim.Request) bool { return r.At >= span.From && r.At < span.Until }
}

func from(at int64) func(sim.Request) bool {
	return func(r sim.Request) bool { return r.At >= at }
}

func failed(r sim.Request) bool { return r.Class == load.Failure }

// curve returns the quantiles of l that reports plot.
func curve(l sim.Latencies, scale float64) []float64 {
	points := make([]float64, len(CurveAt))
	for i, p := range CurveAt {
		if points[i] = l.At(p) / scale; points[i] >= float64(sim.Never)/scale {
			points[i] = math.NaN()
		}
	}
	return points
}
