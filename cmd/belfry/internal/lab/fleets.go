package lab

import "github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"

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
		Judged: "mean",
		About:  "a hundred equal queues at 90 % load, and clients that know only of their own requests",
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
		Judged: "mean",
		About:  "a hundred queues at 90 % load, of which half are two times slower; ten clients",
		Parts:  []Part{{slow: true, run: fleet(10, 0.9, func(i int) float64 { return float64(1 + i%2) })}},
	}
}

func fleetTenth() Scenario {
	return Scenario{
		Name: "fleet-tenth", Unit: serviceTimes, Policies: fleetPolicies,
		Judged: "mean",
		About:  "a hundred queues at 70 % load, of which ten are ten times slower; ten clients",
		Parts: []Part{{slow: true, run: fleet(10, 0.7, func(i int) float64 {
			if i%10 == 0 {
				return 10
			}
			return 1
		})}},
	}
}
