package lab

import (
	"slices"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// What is known of a server that was away.
const (
	remembered = "remembered"
	forgotten  = "forgotten"
)

// own returns a policy of package sim under which a scenario's own policies run.
func own(name string) sim.Policy {
	p, _ := sim.Find(name)
	return p
}

func flicker() Scenario {
	return Scenario{
		Name: "flicker", Unit: "ms", Policies: []string{forgotten, remembered, inFlight},
		About: "ten servers, two of them slow; discovery loses one for 2 s, each in turn, again and again, and the default remembers what it has measured of it for a minute, or forgets; what discovery says is made up, and package load takes it back",
		Parts: []Part{
			{Name: "recorded", run: func(p sim.Policy, seed uint64) Outcome {
				servers := eleven()[:10]
				for _, s := range []int{2, 7} {
					servers[s].Windows = []sim.Window{{Span: always, Slow: 10}}
				}
				return flickering(p.Name, sim.Config{Servers: servers, Rate: 1000, Seed: seed})
			}},
			{Name: "queues", run: func(p sim.Policy, seed uint64) Outcome {
				servers := make([]sim.Server, 10)
				for i := range servers {
					servers[i] = sim.Server{Latency: sim.Exponential(10 * ms), Queue: true}
				}
				for _, s := range []int{2, 7} {
					servers[s].Windows = []sim.Window{{Span: always, Slow: 5}}
				}
				return flickering(p.Name, sim.Config{Servers: servers, Rate: 500, Seed: seed})
			}},
		},
	}
}

const inFlight = "in-flight"

func flickering(policy string, cfg sim.Config) Outcome {
	const every, away = 20 * second, 2 * second
	cfg.Clients, cfg.Horizon, cfg.Policy = 3, 140*second, own(sim.Default)
	switch policy {
	case remembered:
		cfg.Remember = 60 * second
	case inFlight:
		cfg.Policy = own(inFlight)
	}
	back := make([][]int64, len(cfg.Servers))
	for i := range cfg.Servers {
		s, from := &cfg.Servers[i], int64(0)
		for at := every + int64(i)*away; at < cfg.Horizon; at += every {
			s.Here = append(s.Here, sim.Span{From: from, Until: at})
			from = at + away
			back[i] = append(back[i], from)
		}
		s.Here = append(s.Here, sim.Span{From: from, Until: sim.Never})
	}
	slow := func(r sim.Request) bool { return cfg.Servers[r.Server].Windows != nil }
	returned := func(r sim.Request) bool {
		return slices.ContainsFunc(back[r.Server], func(at int64) bool { return at <= r.At && r.At < at+away })
	}
	all := sim.Run(cfg)
	l := sim.LatenciesOf(all, from(every))
	return Outcome{
		Figures: []Figure{
			{"mean", l.Mean() / ms},
			{"p99", l.At(0.99) / ms},
			{"p999", l.At(0.999) / ms},
			{"slow_share", sim.Share(all, from(every), slow)},
			{"returned_slow", sim.Share(all, from(every), func(r sim.Request) bool { return slow(r) && returned(r) })},
			{"returned_quick", sim.Share(all, from(every), func(r sim.Request) bool { return !slow(r) && returned(r) })},
		},
		Curve: curve(l, ms),
	}
}
