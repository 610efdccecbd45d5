package histogram_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/histogram"
)

func ExampleHistogram() {
	var h histogram.Histogram
	for ms := range 100 {
		h.Record(time.Duration(ms+1) * time.Millisecond)
	}
	p50, _ := h.Quantile(0.5)
	p99, _ := h.Quantile(0.99)
	fmt.Println(h.Count(), p50.Round(time.Millisecond), p99.Round(time.Millisecond))
	// Output: 100 50ms 99ms
}

func TestQuantilesAreWithinTheStatedError(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var h histogram.Histogram
	var all []time.Duration
	for range 20_000 {
		// Evenly spread over the magnitudes, from a microsecond to an hour.
		d := time.Duration(math.Exp(r.Float64()*math.Log(3.6e9))) * time.Microsecond
		all = append(all, d)
		h.Record(d)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.001, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1} {
		want := all[max(int(math.Ceil(q*float64(len(all))))-1, 0)]
		got, ok := h.Quantile(q)
		if !ok {
			t.Fatalf("quantile %v: no answer", q)
		}
		if off := math.Abs(float64(got-want)) / float64(want); off > 0.004 {
			t.Errorf("quantile %v is %v, want %v: off by %.3f %%", q, got, want, off*100)
		}
	}
}

func TestSmallValuesAreExact(t *testing.T) {
	for us := range 256 {
		var h histogram.Histogram
		d := time.Duration(us) * time.Microsecond
		h.Record(d)
		if got, _ := h.Quantile(0.5); got != d {
			t.Errorf("recorded %v, median is %v", d, got)
		}
	}
}

func TestEdges(t *testing.T) {
	var h histogram.Histogram
	if d, ok := h.Quantile(0.5); ok || h.Count() != 0 {
		t.Errorf("an empty histogram says its median is %v", d)
	}
	h.Record(-time.Second)
	if d, ok := h.Quantile(1); !ok || d != 0 {
		t.Errorf("a negative duration reads %v, want 0", d)
	}
	h.Record(100 * time.Hour)
	if d, _ := h.Quantile(1); d > histogram.Limit || float64(d) < 0.99*float64(histogram.Limit) {
		t.Errorf("a duration beyond the limit reads %v, want about %v", d, histogram.Limit)
	}
	var one histogram.Histogram
	one.Record(1001 * time.Microsecond)
	if d, _ := one.Quantile(0.999); d > 1001*time.Microsecond {
		t.Errorf("a quantile, %v, is above the longest duration recorded", d)
	}
}

func TestConcurrentRecordsAreAllCounted(t *testing.T) {
	var h histogram.Histogram
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 1000 {
				h.Record(time.Duration(i*1000+j) * time.Microsecond)
				if j%100 == 0 {
					h.Quantile(0.5)
				}
			}
		})
	}
	all.Wait()
	if n := h.Count(); n != 8000 {
		t.Errorf("%d counted, want 8000", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	var h histogram.Histogram
	b.ReportAllocs()
	d := time.Microsecond
	for b.Loop() {
		h.Record(d)
		d = d*5/4 + 1
		if d > time.Minute {
			d = time.Microsecond
		}
	}
}
