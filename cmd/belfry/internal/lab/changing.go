package lab

import (
	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// Scenarios whose servers come, go and change.

func coldStart() Scenario {
	return Scenario{
		Name: "cold-start", Unit: "ms", Policies: usual,
		Judged: "p99",
		About:  "an eleventh server joins ten, and is five times slower for its first 10 s; latencies are of those 10 s",
		Parts: []Part{
			{Name: "recorded", run: func(p sim.Policy, seed uint64) Outcome {
				servers := eleven()
				return coldAndWarm(sim.Config{Servers: servers, Rate: 1000, Horizon: 30 * second, Policy: p, Seed: seed}, ms)
			}},
			{Name: "queues", run: func(p sim.Policy, seed uint64) Outcome {
				servers := make([]sim.Server, 11)
				for i := range servers {
					servers[i] = sim.Server{Latency: sim.Exponential(10 * ms), Queue: true}
				}
				return coldAndWarm(sim.Config{Servers: servers, Rate: 700, Horizon: 30 * second, Policy: p, Seed: seed}, ms)
			}},
		},
	}
}

// coldAndWarm runs cfg with a last server that joins late, once cold and once warm.
func coldAndWarm(cfg sim.Config, scale float64) Outcome {
	cold := sim.Span{From: 15 * second, Until: 25 * second}
	newcomer := &cfg.Servers[len(cfg.Servers)-1]
	newcomer.Here = []sim.Span{{From: cold.From, Until: sim.Never}}
	warm := sim.LatenciesOf(sim.Run(cfg), during(cold))
	newcomer.Windows = []sim.Window{{Span: cold, Slow: 5}}
	all := sim.Run(cfg)
	l := sim.LatenciesOf(all, during(cold))
	return Outcome{
		Figures: []Figure{
			{"p50", l.At(0.5) / scale},
			{"p99", l.At(0.99) / scale},
			{"p99_warm", warm.At(0.99) / scale},
			{"p99_ratio", l.At(0.99) / warm.At(0.99)},
			{"share_new", sim.Share(all, during(cold), to(int32(len(cfg.Servers)-1)))},
		},
		Curve: curve(l, scale),
	}
}

func flapping() Scenario {
	return Scenario{
		Name: "flapping", Unit: "ms", Policies: usual,
		Judged: "failed",
		About:  "of ten servers that take 50 ms one is good for 5 s and fails everything in 1 ms for 5 s, in turn",
		Parts: []Part{{run: func(p sim.Policy, seed uint64) Outcome {
			servers := constant(10, 50)
			for at := 5 * second; at < 60*second; at += 10 * second {
				servers[0].Windows = append(servers[0].Windows, sim.Window{
					Span: sim.Span{From: at, Until: at + 5*second}, Fails: 1, FailsIn: ms,
				})
			}
			all := sim.Run(sim.Config{Servers: servers, Rate: 1000, Horizon: 60 * second, Policy: p, Seed: seed})
			return Outcome{Figures: []Figure{
				{"failed", sim.Share(all, nil, failed)},
				{"flapping_share", sim.Share(all, nil, to(0))},
			}}
		}}},
	}
}

func rollingRestart() Scenario {
	return Scenario{
		Name: "rolling-restart", Unit: "ms", Policies: usual,
		Judged: "failed",
		About:  "each of ten servers is away for 5 s in turn, and is five times slower for 5 s when it is back",
		Parts: []Part{
			{Name: "announced", run: restart(0)},
			{Name: "sudden", run: restart(second)},
		},
	}
}

// restart lets servers fail for a time before they are known to be away.
func restart(unnoticed int64) func(sim.Policy, uint64) Outcome {
	return func(p sim.Policy, seed uint64) Outcome {
		servers := eleven()[:10]
		for i := range servers {
			stops := 5*second + int64(i)*10*second
			starts := stops + 5*second
			servers[i].Here = []sim.Span{{From: 0, Until: stops + unnoticed}, {From: starts, Until: sim.Never}}
			servers[i].Windows = []sim.Window{
				{Span: sim.Span{From: stops, Until: starts}, Fails: 1, FailsIn: ms},
				{Span: sim.Span{From: starts, Until: starts + 5*second}, Slow: 5},
			}
		}
		all := sim.Run(sim.Config{Servers: servers, Rate: 1000, Horizon: 110 * second, Policy: p, Seed: seed})
		l := sim.LatenciesOf(all, nil)
		return Outcome{
			Figures: []Figure{
				{"failed", sim.Share(all, nil, failed)},
				{"p50", l.At(0.5) / ms},
				{"p99", l.At(0.99) / ms},
				{"p999", l.At(0.999) / ms},
			},
			Curve: curve(l, ms),
		}
	}
}

// What the callers of an outage do.
const (
	noBudget = "no-budget"
	unmarked = "unmarked"
)

func outage() Scenario {
	return Scenario{
		Name: "outage", Unit: "ms", Policies: []string{noBudget, unmarked, sim.Default},
		About: "three callers in a row retry; after 10 s their server fails everything: attempts per request",
		Parts: []Part{{run: func(p sim.Policy, seed uint64) Outcome {
			o := sim.Outage{
				Callers: 3, Rate: 1000, Fails: 10 * second, Until: 60 * second, Took: sim.Millisecond,
				Unlimited: p.Name == noBudget, Unmarked: p.Name == unmarked, Seed: seed,
			}
			first, later := o, o.Run(20*second) // ttl is 10 s
			first.Until = 20 * second
			return Outcome{Figures: append(amplification(later), Figure{"first_ttl", endToEnd(first.Run(10 * second))})}
		}}},
	}
}

func amplification(tallies []sim.Tally) []Figure {
	var all []Figure
	for i, name := range []string{"hop_1", "hop_2", "hop_3"} {
		all = append(all, Figure{name, float64(tallies[i].Attempts) / float64(tallies[i].Requests)})
	}
	return append(all, Figure{"end_to_end", endToEnd(tallies)})
}

func endToEnd(tallies []sim.Tally) float64 {
	return float64(tallies[len(tallies)-1].Attempts) / float64(tallies[0].Requests)
}
