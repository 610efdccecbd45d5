package lab

import "github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"

func oneStuck() Scenario {
	s := Scenario{
		Name: "one-stuck", Unit: "ms", Policies: []string{"random", "in-flight", "peak-ewma", sim.Default},
		Judged: "share", Higher: true,
		About: "servers that take 20 ms; a second after the start, one request to one of them never comes back",
	}
	for _, c := range []struct {
		name    string
		servers int
		rate    float64
	}{{"2-at-20", 2, 20}, {"3-at-20", 3, 20}, {"10-at-20", 10, 20}, {"2-at-200", 2, 200}, {"3-at-200", 3, 200}, {"10-at-200", 10, 200}} {
		s.Parts = append(s.Parts, Part{Name: c.name, run: func(p sim.Policy, seed uint64) Outcome {
			servers := constant(c.servers, 20)
			servers[0].Lost = []sim.Span{{From: second, Until: sim.Never}}
			all := sim.Run(sim.Config{Servers: servers, Rate: c.rate, Horizon: 120 * second, Policy: p, Seed: seed})
			return Outcome{Figures: []Figure{{"share", sim.Share(all, nil, to(0))}}}
		}})
	}
	return s
}

func streams() Scenario {
	return Scenario{
		Name: "streams", Unit: "ms", Policies: []string{"random", "in-flight", "peak-ewma", sim.Default},
		Judged: "least_of_fair", Higher: true,
		About: "three servers that take 20 ms; two of them have 100 open responses each all the time",
		Parts: []Part{{run: func(p sim.Policy, seed uint64) Outcome {
			all := sim.Run(sim.Config{
				Servers: constant(3, 20), Streams: []int{100, 100, 0}, Rate: 200, Horizon: 60 * second, Policy: p, Seed: seed,
			})
			var o Outcome
			least := 1.0
			for i, name := range []string{"share_a", "share_b", "share_free"} {
				share := sim.Share(all, nil, to(int32(i)))
				least = min(least, share)
				o.Figures = append(o.Figures, Figure{name, share})
			}
			o.Figures = append(o.Figures, Figure{"least_of_fair", 3 * least})
			return o
		}}},
	}
}
