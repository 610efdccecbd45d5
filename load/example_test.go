package load_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/load"
)

// A metric is a function of the time that it is given, in microseconds.
func ExamplePeakEWMA() {
	fleet := load.PeakEWMA{Decay: 10 * time.Second}.Fleet()
	a := fleet.Join("a", 0)

	call := a.Start(0)
	a.End(20_000, call, load.Success)
	fmt.Printf("after an answer in 20 ms: %.0f\n", a.Cost(20_000, 0))
	fmt.Printf("the same, with two in flight: %.0f\n", a.Cost(20_000, 2))

	a.Start(20_000)
	fmt.Printf("with one that is out for a second: %.0f\n", a.Cost(1_020_000, 1))
	// Output:
	// after an answer in 20 ms: 20000
	// the same, with two in flight: 60000
	// with one that is out for a second: 4000000
}

// What servers report of everybody's requests counts with one's own.
func ExampleReported() {
	fleet := load.Reported{}.Fleet()
	a, b := fleet.Join("a", 0), fleet.Join("b", 0)
	a.(load.Reporter).Report(0, load.Report{InFlight: 7})
	b.(load.Reporter).Report(0, load.Report{InFlight: 1})
	fmt.Println("a costs", a.Cost(0, 0)/b.Cost(0, 0), "times as much as b")
	// Output: a costs 4 times as much as b
}

// A fleet that probes says whom to ask, and chooses by the answers.
func ExampleProbing() {
	fleet := load.Probing{}.Fleet().(load.Chooser)
	inFlight := map[load.Endpoint]float64{fleet.Join("a", 0): 7, fleet.Join("b", 0): 1}

	random := rand.NewPCG(1, 2)
	for range 20 {
		for ep := range inFlight { // a call each, that is answered at once
			ep.End(0, ep.Start(0), load.Success)
		}
		for ep := fleet.Probe(0, random); ep != nil; ep = fleet.Probe(0, random) {
			ep.(load.Reporter).Report(0, load.Report{InFlight: inFlight[ep]}) // the answer to a probe
		}
	}
	fmt.Println("chosen: the one with", inFlight[fleet.Choose(0)], "in flight")
	// Output: chosen: the one with 1 in flight
}

func ExampleConstant() {
	costs := map[string]float64{"near": 1, "far": 2}
	fleet := load.Constant(func(key string) float64 { return costs[key] }).Fleet()
	fmt.Println(fleet.Join("near", 0).Cost(0, 0), fleet.Join("far", 0).Cost(0, 0))
	// Output: 1 2
}
