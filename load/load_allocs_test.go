//go:build !race

package load_test

import (
	"testing"

	"github.com/belfry-go/belfry/load"
)

func TestAllocs(t *testing.T) {
	for _, metric := range []load.Metric{load.Expected{}, load.Reported{}, load.Probing{}, load.PeakEWMA{}, load.Pending{}, load.Constant(nil)} {
		ep := metric.Fleet().Join("key", 0)
		now := int64(0)
		got := testing.AllocsPerRun(100, func() {
			now++
			mark := ep.Start(now)
			ep.Cost(now, 1)
			ep.Latency(now)
			ep.End(now, mark, load.Failure)
		})
		if got != 0 {
			t.Errorf("%T: %v allocations a call, want 0", metric, got)
		}
	}
}
