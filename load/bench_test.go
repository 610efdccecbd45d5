package load_test

import (
	"testing"

	"github.com/belfry-go/belfry/load"
)

func BenchmarkExpected(b *testing.B) { benchmark(b, load.Expected{}) }

func BenchmarkPeakEWMA(b *testing.B) { benchmark(b, load.PeakEWMA{}) }

// benchmark is what one call costs a balancer: two costs to compare, a start and an end.
func benchmark(b *testing.B, metric load.Metric) {
	fleet := metric.Fleet()
	a, other := fleet.Join("a", 0), fleet.Join("b", 0)
	b.ReportAllocs()
	for now := int64(0); b.Loop(); now += 100 {
		if a.Cost(now, 1) < 0 || other.Cost(now, 1) < 0 {
			b.Fatal("a cost below 0")
		}
		a.End(now+50, a.Start(now), load.Success)
		a, other = other, a
	}
}
