package lab

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/pick"
	"github.com/belfry-go/belfry/load"
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
		About: "half of a thousand servers are ejected: how often drawing k pairs shows only such, in this traffic, and by how much it is off u^(2k), with u = 0.5, in so many draws among four thousand that chance makes less than half a percent",
	}
	const n, u = 1000, 0.5
	for k := 1; k <= 4; k++ {
		s.Parts = append(s.Parts, Part{Name: fmt.Sprint(k), run: func(p sim.Policy, seed uint64) Outcome {
			all := sim.Run(sim.Config{Servers: constant(n, 50), Rate: 2000, Horizon: 60 * second, Out: n * u, Effort: k, Policy: p, Seed: seed})
			law := math.Pow(u, float64(2*k))
			return Outcome{Figures: []Figure{
				{"missed", sim.Share(all, nil, func(r sim.Request) bool { return r.Missed })},
				{"law", law},
				{"off", math.Abs(onlyOut(seed, 4*n, 4*n*u, k, int(chanceOf/law))/law - 1)},
				{"to_ejected", sim.Share(all, nil, func(r sim.Request) bool { return r.Server < n*u })},
			}}
		}})
	}
	return s
}

// chanceOf is how many misses there are for chance to make 0.4 % of them.
const chanceOf = 62_500

// onlyOut returns how often k pairs of n endpoints, of which so many are out, show only such.
func onlyOut(seed uint64, n, out, k, draws int) float64 {
	set := make([]*pick.Endpoint, n)
	for i := range set {
		set[i] = new(pick.Endpoint)
		set[i].Init(load.Pending{}.Fleet().Join("", 0))
	}
	source, missed := rand.NewPCG(seed, uint64(k)), 0
	for range draws {
		if _, _, none := pick.BetterIn(0, source, set, nil, func(i int) bool { return i < out }, k); none {
			missed++
		}
	}
	return float64(missed) / float64(draws)
}

// What is done with a server that asks to be left alone, under the default and under requests in flight.
const (
	heeded          = "heeded"
	heededHalf      = "heeded-half" // half of the servers may be out at a time
	ignored         = "ignored"
	inFlightHeeded  = "in-flight-heeded"
	inFlightIgnored = "in-flight-ignored"
)

func retryAfter() Scenario {
	s := Scenario{
		Name: "retry-after", Unit: "ms", Policies: []string{inFlightIgnored, inFlightHeeded, ignored, heeded, heededHalf},
		About: "ten servers that take 50 ms, of which one, or three, fail everything in 1 ms for the middle half of a minute, and ask to be left alone for 2 s; ten clients heed that, as far as the guard rail lets them (one of ten is out at a time, or five), or not",
	}
	for _, c := range []struct {
		name string
		n    int
	}{{"one", 1}, {"three", 3}} {
		s.Parts = append(s.Parts, Part{Name: c.name, run: func(p sim.Policy, seed uint64) Outcome {
			over := middle(sim.Window{Fails: 1, FailsIn: ms, RetryAfter: 2 * second})
			servers := constant(10, 50)
			for i := range c.n {
				servers[i].Windows = []sim.Window{over}
			}
			policy := own(sim.Default)
			if p.Name == inFlightHeeded || p.Name == inFlightIgnored {
				policy = own(inFlight)
			}
			switch p.Name {
			case heeded, inFlightHeeded:
				policy = sim.Heeding(policy, eject.Config{})
			case heededHalf:
				policy = sim.Heeding(policy, eject.Config{MaxShare: 0.5})
			}
			all := sim.Run(sim.Config{Servers: servers, Clients: 10, Rate: 1000, Horizon: 60 * second, Policy: policy, Seed: seed})
			ill, seconds := during(over.Span), float64(over.Until-over.From)/float64(second)
			early := 0.0
			for _, r := range all {
				if ill(r) && r.Early {
					early++
				}
			}
			return Outcome{Figures: []Figure{
				{"failed", sim.Share(all, ill, failed)},
				{"early_per_s", early / seconds},
				{"share_after", sim.Share(all, from(over.Until), func(r sim.Request) bool { return r.Server < int32(c.n) })},
			}}
		}})
	}
	return s
}
