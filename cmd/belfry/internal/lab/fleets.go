package lab

import "github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"

// The fleets are a hundred queues. Their figures are in service times, without the first tenth of the time. A probe takes a twentieth of a
// service time, and a hundredth of one from the server.
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
			Probe: int64(unit / 20), ProbeWork: int64(unit / 100),
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
	"random", "round-robin", "in-flight", "peak-ewma", "peak-ewma/1s", sim.Default, "default/1s", "reported", "probing", "p2c-oracle", "jsq-oracle",
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

// fleetFour is the case that an independent implementation of Prequal was 25 % worse in: few servers, and probes that take their time
// from requests, a fiftieth of a request each.
func fleetFour() Scenario {
	four := func(clients int) func(sim.Policy, uint64) Outcome {
		return func(p sim.Policy, seed uint64) Outcome {
			servers := make([]sim.Server, 4)
			for i := range servers {
				servers[i] = sim.Server{Latency: sim.Exponential(5 * ms), Queue: true}
			}
			all := sim.Run(sim.Config{
				Servers: servers, Clients: clients, Rate: 0.9 * 4 * 200, Horizon: 300 * second, Policy: p, Seed: seed,
				ProbeWork: int64(5 * ms / 50),
			})
			l := sim.LatenciesOf(all, from(30*second))
			return Outcome{
				Figures: []Figure{{"mean", l.Mean() / ms}, {"p99", l.At(0.99) / ms}, {"p999", l.At(0.999) / ms}},
				Curve:   curve(l, ms),
			}
		}
	}
	return Scenario{
		Name: "fleet-four", Unit: "ms", Policies: []string{"round-robin", "in-flight", sim.Default, "reported", "probing", "p2c-oracle", "jsq-oracle"},
		Judged: "mean",
		About:  "four equal queues of 5 ms at 90 % load, which a probe takes 0.1 ms from",
		Parts:  []Part{{Name: "1", run: four(1)}, {Name: "10", run: four(10)}},
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
