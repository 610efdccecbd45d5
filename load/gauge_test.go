package load

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// passed lets a request come and go through g that finds others there.
func passed(g *Gauge, others int, took time.Duration) {
	for range others {
		g.Begin()
	}
	g.End(g.Begin(), took)
	for range others {
		g.Drop()
	}
}

func TestGaugeCounts(t *testing.T) {
	var g Gauge
	if r := g.Report(); r != (Report{}) {
		t.Errorf("a new gauge reports %v", r)
	}
	if a, b := g.Begin(), g.Begin(); a != 0 || b != 1 {
		t.Errorf("found %d and %d before, want 0 and 1", a, b)
	}
	g.End(0, time.Second)
	if r := g.Report(); r.InFlight != 1 || g.InFlight() != 1 {
		t.Errorf("%v in flight, want 1", r.InFlight)
	}
	g.Drop()
	if r := g.Report(); r.InFlight != 0 {
		t.Errorf("%v in flight, want none", r.InFlight)
	}
}

func TestGaugeLatencyIsThatOfTheNearest(t *testing.T) {
	var g Gauge
	for i := range 20 {
		passed(&g, 0, time.Duration(1+i)*time.Millisecond)
		passed(&g, 10, time.Duration(101+i)*time.Millisecond)
		passed(&g, 1000, time.Second)
	}
	for _, c := range []struct {
		inFlight int
		want     time.Duration
	}{
		{0, 13 * time.Millisecond}, // the median of the last fifteen, 6 to 20
		{4, 13 * time.Millisecond},
		{6, 113 * time.Millisecond},
		{10, 113 * time.Millisecond},
		{40, 113 * time.Millisecond},
		{990, time.Second},
		{1 << 20, time.Second},
	} {
		for range c.inFlight {
			g.Begin()
		}
		if got := g.Report().Latency; got != c.want {
			t.Errorf("with %d in flight the latency is %v, want %v", c.inFlight, got, c.want)
		}
		for range c.inFlight {
			g.Drop()
		}
	}
}

func TestGaugeSteps(t *testing.T) {
	last := -1
	for n := range 1 << 17 {
		if got := step(n); got < last || got > last+1 || got >= most {
			t.Fatalf("step %d of %d follows %d", got, n, last)
		} else {
			last = got
		}
	}
}

func TestGaugeMedian(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	var s samples
	var all []int64
	for range 100 {
		v := random.Int64N(1000)
		s.add(v)
		all = append(all, v)
		recent := slices.Clone(all[max(len(all)-15, 0):])
		slices.Sort(recent)
		if got, want := s.median(), recent[(len(recent)-1)/2]; got != want {
			t.Fatalf("seed %d: median %d, want %d", seed, got, want)
		}
	}
}

func TestGaugeIsSafe(t *testing.T) {
	var g Gauge
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				before := g.Begin()
				if r := g.Report(); !r.Valid() || r.InFlight < 1 {
					t.Errorf("reports %v", r)
				}
				g.End(before, time.Millisecond)
			}
		})
	}
	all.Wait()
	if g.InFlight() != 0 {
		t.Errorf("%d are left", g.InFlight())
	}
}
