package lab

import (
	"fmt"
	"math"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// Scenarios in which servers are left alone.

func grey() Scenario {
	return Scenario{
		Name: "grey", Unit: "ms", Policies: []string{"random", "in-flight", "peak-ewma", "outlier", sim.Default},
		Judged: "failed",
		About:  "of ten servers that take 50 ms one fails one request in five, in 50 ms too",
		Parts: []Part{{run: func(p sim.Policy, seed uint64) Outcome {
			servers := constant(10, 50)
			servers[0].Windows = []sim.Window{{Span: always, Fails: 0.2, FailsIn: 50 * ms}}
			all := sim.Run(sim.Config{Servers: servers, Rate: 1000, Horizon: 120 * second, Policy: p, Seed: seed})
			return Outcome{Figures: []Figure{
				{"failed", sim.Share(all, nil, failed)},
				{"grey_share", sim.Share(all, nil, to(0))},
			}}
		}}},
	}
}

func halfOut() Scenario {
	s := Scenario{
		Name: "half-out", Unit: "ms", Policies: []string{"outlier"},
		About: "half of a thousand servers are ejected: how often drawing pairs shows only such, against u^(2k), with u = 0.5 and k pairs",
	}
	const n, u = 1000, 0.5
	for k := 1; k <= 4; k++ {
		s.Parts = append(s.Parts, Part{Name: fmt.Sprint(k), run: func(p sim.Policy, seed uint64) Outcome {
			all := sim.Run(sim.Config{Servers: constant(n, 50), Rate: 2000, Horizon: 60 * second, Out: n * u, Effort: k, Policy: p, Seed: seed})
			missed, law := sim.Share(all, nil, func(r sim.Request) bool { return r.Missed }), math.Pow(u, float64(2*k))
			return Outcome{Figures: []Figure{
				{"missed", missed},
				{"law", law},
				{"off", math.Abs(missed - law)},
				{"to_ejected", sim.Share(all, nil, func(r sim.Request) bool { return r.Server < n*u })},
			}}
		}})
	}
	return s
}
