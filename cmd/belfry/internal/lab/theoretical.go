package lab

import (
	"fmt"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// Scenarios whose figures follow from theory.

func balls() Scenario {
	s := Scenario{
		Name: "balls", Unit: "balls", Policies: []string{"random", "in-flight", "in-flight-replacement", "in-flight-3", "in-flight-4", sim.Default},
		About: "balls into as many bins: how many the fullest bin has",
	}
	for _, c := range []struct {
		name         string
		bins, trials int
		slow         bool
	}{{"100", 100, 20_000, true}, {"2^8", 1 << 8, 100, false}, {"2^12", 1 << 12, 100, true}, {"2^16", 1 << 16, 100, true}} {
		s.Parts = append(s.Parts, Part{Name: c.name, slow: c.slow, run: func(p sim.Policy, seed uint64) Outcome {
			mean, most, share := summary(sim.Balls(p, c.bins, c.bins, c.trials, seed))
			return Outcome{Figures: []Figure{{"mean", mean}, {"most_frequent", most}, {"its_share", share}}}
		}})
	}
	return s
}

// summary returns the mean of counts, the most frequent of them, and its share.
func summary(counts []int) (mean, most, share float64) {
	times := map[int]int{}
	for _, n := range counts {
		mean += float64(n) / float64(len(counts))
		times[n]++
		if t := times[n]; float64(t)/float64(len(counts)) > share || float64(t)/float64(len(counts)) == share && float64(n) < most {
			most, share = float64(n), float64(t)/float64(len(counts))
		}
	}
	return mean, most, share
}

func idle() Scenario {
	s := Scenario{
		Name: "idle", Unit: "ms", Policies: []string{"random", "in-flight", "peak-ewma", sim.Default},
		About: "a million picks of idle servers: how likely picks so uneven are, by chi-square",
	}
	for _, n := range []int{1, 2, 3, 10, 97} {
		s.Parts = append(s.Parts, Part{Name: fmt.Sprint(n), run: func(p sim.Policy, seed uint64) Outcome {
			return Outcome{Figures: []Figure{{"p", chiSquare(sim.Picks(p, n, 1_000_000, seed))}}}
		}})
	}
	return s
}

func supermarket() Scenario {
	s := Scenario{
		Name: "supermarket", Unit: serviceTimes, Policies: []string{"random", "in-flight", "p2c-oracle", "jsq-oracle", sim.Default},
		Judged: "mean",
		About:  "a hundred equal queues and one client, against the closed form for infinitely many",
	}
	for _, l := range []float64{0.5, 0.7, 0.9, 0.95} {
		s.Parts = append(s.Parts, Part{Name: fmt.Sprint(l), slow: true, run: market(fleetSize, l, 3*fleetHorizon)})
	}
	return s
}

// market is n queues at load l.
func market(n int, l float64, horizon int64) func(sim.Policy, uint64) Outcome {
	return func(p sim.Policy, seed uint64) Outcome {
		servers := make([]sim.Server, n)
		for i := range servers {
			servers[i] = sim.Server{Latency: sim.Exponential(unit), Queue: true}
		}
		all := sim.Run(sim.Config{Servers: servers, Rate: l * float64(n) * 1e6 / unit, Horizon: horizon, Policy: p, Seed: seed})
		warm := all[len(all)/10:]
		lat := sim.LatenciesOf(warm, nil)
		crowded := 0.0
		for _, r := range warm {
			crowded += float64(r.Crowded) / float64(n) / float64(len(warm))
		}
		d := 2
		if p.Name == "random" {
			d = 1
		}
		return Outcome{
			Figures: []Figure{
				{"mean", lat.Mean() / unit},
				{"closed_form", supermarketMean(l, d)},
				{"5_or_more", crowded},
				{"closed_form_5", supermarketTail(l, d, 5)},
			},
			Curve: curve(lat, unit),
		}
	}
}
