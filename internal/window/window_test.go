package window_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/window"
)

func Example() {
	w := window.New(0.9, 10, time.Minute)
	for ms := range time.Duration(10) {
		w.Record(0, (ms+1)*time.Millisecond)
	}
	_, now := w.Quantile(0)
	d, later := w.Quantile(time.Minute)
	fmt.Println(now, later, d.Round(time.Millisecond))
	// Output: false true 9ms
}

// within fails unless got is want, give or take 3 %.
func within(t *testing.T, what string, got time.Duration, ok bool, want time.Duration) {
	t.Helper()
	if off := math.Abs(float64(got-want)) / float64(want); !ok || off > 0.03 {
		t.Errorf("%s: %v, %v, want %v: off by %.2f %%", what, got, ok, want, off*100)
	}
}

func TestRelativeError(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var all []time.Duration
	for range 10_000 { // evenly spread over the magnitudes, from a nanosecond to an hour
		all = append(all, time.Duration(math.Exp(r.Float64()*math.Log(3.6e12))))
	}
	sorted := slices.Sorted(slices.Values(all))
	for _, q := range []float64{0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1} {
		w := window.New(q, 1, time.Second)
		for _, d := range all {
			w.Record(0, d)
		}
		got, ok := w.Quantile(time.Second)
		within(t, fmt.Sprint("quantile ", q), got, ok, sorted[max(int(math.Ceil(q*float64(len(all))))-1, 0)])
	}
}

func TestEveryDurationHasABucket(t *testing.T) {
	for _, d := range []time.Duration{1, 63, 64, 65, 127, 128, time.Second, math.MaxInt64 / 2, math.MaxInt64} {
		w := window.New(1, 1, time.Second)
		w.Record(0, d)
		got, ok := w.Quantile(time.Second)
		within(t, d.String(), got, ok, d)
	}
	w := window.New(1, 1, time.Second)
	w.Record(0, -time.Second)
	if got, ok := w.Quantile(time.Second); got != 0 || !ok {
		t.Errorf("a negative duration: %v, %v", got, ok)
	}
}

func TestPeriods(t *testing.T) {
	w := window.New(0.5, 2, time.Minute)
	unknown := func(when time.Duration) {
		t.Helper()
		if d, ok := w.Quantile(when); ok {
			t.Errorf("at %v: %v, want nothing to be known", when, d)
		}
	}
	known := func(when, want time.Duration) {
		t.Helper()
		got, ok := w.Quantile(when)
		within(t, fmt.Sprint("at ", when), got, ok, want)
	}
	start := 100 * time.Hour // the first period begins with the first use
	at := func(s time.Duration) time.Duration { return start + s*time.Second }
	w.Record(at(0), time.Second)
	w.Record(at(59), time.Second)
	unknown(at(59)) // the current period does not count
	known(at(60), time.Second)
	w.Record(at(60), time.Hour)
	w.Record(at(60), time.Hour)
	known(at(119), time.Second) // the last full one does, for all of the next
	known(at(30), time.Second)  // and time does not run backwards
	known(at(120), time.Hour)
	w.Record(at(125), time.Second)
	unknown(at(180)) // one is too few
	unknown(at(240)) // and so is none
	w.Record(at(250), time.Second)
	w.Record(at(250), time.Second)
	unknown(at(360)) // the last full period, from 300 to 360, was idle
}

// The estimate with what was cancelled is that of the durations before they were.
func TestCensored(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	exponential := func(mean time.Duration) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
	with, without := window.New(0.9, 1, time.Hour), window.New(0.9, 1, time.Hour)
	for range 100_000 {
		d, cancelled := exponential(time.Second), exponential(3*time.Second)
		if d <= cancelled {
			with.Record(0, d)
			without.Record(0, d)
		} else {
			with.Censor(0, cancelled)
		}
	}
	want := time.Duration(math.Log(10) * float64(time.Second))
	got, ok := with.Quantile(time.Hour)
	within(t, "with what was censored", got, ok, want)
	if naive, _ := without.Quantile(time.Hour); float64(naive) > 0.8*float64(want) {
		t.Errorf("without: %v, so the test shows nothing", naive)
	}
}

func TestCensoredAlone(t *testing.T) {
	w := window.New(0.9, 1, time.Second)
	w.Censor(0, time.Millisecond)
	if d, ok := w.Quantile(time.Second); ok {
		t.Errorf("nothing came to its end, and the quantile is %v", d)
	}
	w.Record(time.Second, time.Millisecond)
	w.Censor(time.Second, time.Minute)
	d, ok := w.Quantile(2 * time.Second)
	within(t, "beyond what is known", d, ok, time.Minute)
}

func TestConcurrentRecordsAreAllCounted(t *testing.T) {
	w := window.New(1, 8000, time.Hour)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				w.Record(0, time.Second)
				w.Censor(0, time.Millisecond)
			}
		})
	}
	all.Wait()
	d, ok := w.Quantile(time.Hour)
	within(t, "8000 of 8000", d, ok, time.Second)
}

func BenchmarkWindow(b *testing.B) {
	w := window.New(0.9, 1, time.Second)
	b.ReportAllocs()
	now := time.Duration(0)
	for b.Loop() {
		now += time.Microsecond
		_, _ = w.Quantile(now)
		w.Record(now, now)
	}
}
