package histogram_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/histogram"
)

var halfAndAll = []float64{0.5, 1}

func ExampleWindow() {
	var h histogram.Histogram
	w := histogram.NewWindow(&h, 10)
	h.Record(3 * time.Second)
	for range 11 { // by then that is over
		w.Tick()
	}
	h.Record(2 * time.Millisecond)
	w.Tick()
	median := make([]time.Duration, 1)
	n := w.Quantiles(10, []float64{0.5}, median)
	fmt.Println(n, median[0].Round(time.Millisecond))
	// Output: 1 2ms
}

func TestAWindowForgetsWhatIsOlder(t *testing.T) {
	var h histogram.Histogram
	h.Record(time.Hour) // before the window began
	w := histogram.NewWindow(&h, 3)
	got := make([]time.Duration, 2)
	if n := w.Quantiles(3, halfAndAll, got); n != 0 || got[0] != 0 {
		t.Errorf("a new window has %d, %v", n, got)
	}
	for i := range 5 {
		for range i + 1 {
			h.Record(time.Duration(100+i) * time.Microsecond)
		}
		w.Tick()
	}
	// Five ticks brought 1, 2, 3, 4 and 5.
	for _, c := range []struct {
		ticks       int
		n           uint64
		median, all time.Duration
	}{{1, 5, 104, 104}, {2, 9, 104, 104}, {3, 12, 103, 104}, {99, 12, 103, 104}} {
		n := w.Quantiles(c.ticks, halfAndAll, got)
		if n != c.n || got[0] != c.median*time.Microsecond || got[1] != c.all*time.Microsecond {
			t.Errorf("the last %d ticks have %d, %v; want %d, %v and %v", c.ticks, n, got, c.n, c.median, c.all)
		}
	}
	w.Tick()
	if n := w.Quantiles(1, halfAndAll, got); n != 0 {
		t.Errorf("a tick in which nothing was recorded has %d", n)
	}
}

func TestAWindowCountsEachRecordOnceWhileOthersRecord(t *testing.T) {
	var h histogram.Histogram
	w := histogram.NewWindow(&h, 1)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				h.Record(time.Duration(i) * time.Microsecond)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	var n uint64
	got := make([]time.Duration, 2)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		w.Tick()
		n += w.Quantiles(1, halfAndAll, got)
	}
	if n != 20_000 {
		t.Errorf("%d counted, want 20000", n)
	}
}

func BenchmarkWindowTick(b *testing.B) {
	var h histogram.Histogram
	for i := range 10_000 {
		h.Record(time.Duration(i) * time.Microsecond)
	}
	w := histogram.NewWindow(&h, 10)
	got := make([]time.Duration, 2)
	b.ReportAllocs()
	for b.Loop() {
		w.Tick()
		w.Quantiles(10, halfAndAll, got)
	}
}
