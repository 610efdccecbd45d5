package load_test

import (
	"fmt"
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

func ExampleConstant() {
	costs := map[string]float64{"near": 1, "far": 2}
	fleet := load.Constant(func(key string) float64 { return costs[key] }).Fleet()
	fmt.Println(fleet.Join("near", 0).Cost(0, 0), fleet.Join("far", 0).Cost(0, 0))
	// Output: 1 2
}
