//go:build !race

package sim

import "testing"

// TestAllocs: a run allocates for what there is, and not for each request.
func TestAllocs(t *testing.T) {
	for _, p := range Policies() {
		if p.Name == "outlier" { // it compares once an interval, and that allocates
			continue
		}
		cost := func(seconds int64) float64 {
			cfg := busy(p, 1)
			cfg.Horizon = seconds * Second
			return testing.AllocsPerRun(1, func() { Run(cfg) })
		}
		if short, long := cost(20), cost(60); long > short+20 { // the heap grows a few times
			t.Errorf("%s: %v allocations in 20 s, %v in 60 s", p.Name, short, long)
		}
	}
}
