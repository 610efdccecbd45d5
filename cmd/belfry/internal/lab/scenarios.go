package lab

import (
	"math"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
	"github.com/belfry-go/belfry/load"
)

// Scenarios returns all of them.
func Scenarios() []Scenario {
	return []Scenario{
		slowMiddle(), fastFail(),
		fleetEqual(), fleetHalf(), fleetTenth(),
		hang(), oneStuck(),
	}
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

func hang() Scenario {
	return Scenario{
		Name: "hang", Unit: "ms", Policies: usual,
		About: "one of eleven servers answers nothing for the middle half of a minute",
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
		About: "of ten servers that take 50 ms one fails everything in 1 ms",
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

// The fleets are a hundred queues. Their figures are in service times, without the first tenth of the time.
const (
	fleetSize    = 100
	fleetHorizon = 6000 * int64(unit)
	fleetWarm    = fleetHorizon / 10
)

func fleet(clients int, at float64, slower func(i int) float64) func(sim.Policy, uint64) Outcome {
	return func(p sim.Policy, seed uint64) Outcome {
		servers := make([]sim.Server, fleetSize)
		capacity := 0.0
		for i := range servers {
			mean := unit * slower(i)
			servers[i] = sim.Server{Latency: sim.Exponential(mean), Queue: true}
			capacity += 1e6 / mean
		}
		all := sim.Run(sim.Config{
			Servers: servers, Clients: clients, Rate: at * capacity, Horizon: fleetHorizon, Policy: p, Seed: seed,
		})
		l := sim.LatenciesOf(all, from(fleetWarm))
		return Outcome{
			Figures: []Figure{{"mean", l.Mean() / unit}, {"p99", l.At(0.99) / unit}, {"p999", l.At(0.999) / unit}},
			Curve:   curve(l, unit),
		}
	}
}

// fleetPolicies have a decay of ten service times too, where there is one.
var fleetPolicies = []string{
	"random", "round-robin", "in-flight", "peak-ewma", "peak-ewma/1s", sim.Default, "default/1s", "p2c-oracle", "jsq-oracle",
}

const serviceTimes = "service times"

func fleetEqual() Scenario {
	alike := func(int) float64 { return 1 }
	return Scenario{
		Name: "fleet-equal", Unit: serviceTimes, Policies: fleetPolicies,
		About: "a hundred equal queues at 90 % load, and clients that know only of their own requests",
		Parts: []Part{
			{Name: "1", run: fleet(1, 0.9, alike), slow: true},
			{Name: "10", run: fleet(10, 0.9, alike), slow: true},
			{Name: "100", run: fleet(100, 0.9, alike), slow: true},
		},
	}
}

func fleetHalf() Scenario {
	return Scenario{
		Name: "fleet-half", Unit: serviceTimes, Policies: fleetPolicies,
		About: "a hundred queues at 90 % load, of which half are two times slower; ten clients",
		Parts: []Part{{slow: true, run: fleet(10, 0.9, func(i int) float64 { return float64(1 + i%2) })}},
	}
}

func fleetTenth() Scenario {
	return Scenario{
		Name: "fleet-tenth", Unit: serviceTimes, Policies: fleetPolicies,
		About: "a hundred queues at 70 % load, of which ten are ten times slower; ten clients",
		Parts: []Part{{slow: true, run: fleet(10, 0.7, func(i int) float64 {
			if i%10 == 0 {
				return 10
			}
			return 1
		})}},
	}
}

func oneStuck() Scenario {
	s := Scenario{
		Name: "one-stuck", Unit: "ms", Policies: []string{"random", "in-flight", "peak-ewma", sim.Default},
		About: "servers that take 20 ms; one request to one of them never comes back",
	}
	for _, c := range []struct {
		name    string
		servers int
		rate    float64
	}{{"2-at-20", 2, 20}, {"3-at-20", 3, 20}, {"10-at-20", 10, 20}, {"2-at-200", 2, 200}, {"3-at-200", 3, 200}, {"10-at-200", 10, 200}} {
		s.Parts = append(s.Parts, Part{Name: c.name, run: func(p sim.Policy, seed uint64) Outcome {
			servers := constant(c.servers, 20)
			servers[0].Lost = 1
			all := sim.Run(sim.Config{Servers: servers, Rate: c.rate, Horizon: 120 * second, Policy: p, Seed: seed})
			return Outcome{Figures: []Figure{{"share", sim.Share(all, nil, to(0))}}}
		}})
	}
	return s
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
