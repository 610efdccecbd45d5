package demo

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab"
)

// sending is a plan of which only the load matters.
func sending(run time.Duration, rate int, seed uint64) plan {
	return plan{Demo: lab.Demo{Run: run, Rate: rate}, seed: seed}
}

func times(p plan) []time.Duration {
	var all []time.Duration
	for n, due := range arrivals(p) {
		if n != uint64(len(all)) {
			panic("requests are not numbered in order")
		}
		all = append(all, due)
	}
	return all
}

func TestArrivalsAreAPoissonProcessOfTheRate(t *testing.T) {
	p := sending(100*time.Second, 1000, 1)
	all := times(p)
	// The number of arrivals has a standard deviation of √100 000 = 316.
	if n := len(all); n < 98_500 || n > 101_500 {
		t.Errorf("%d arrivals in 100 s at 1000/s", n)
	}
	if !slices.IsSorted(all) || all[0] < 0 || all[len(all)-1] >= p.Run {
		t.Errorf("arrivals from %v to %v are out of order or of the period", all[0], all[len(all)-1])
	}
	// Gaps of a Poisson process are spread as wide as they are long.
	var sum, squares float64
	for i := 1; i < len(all); i++ {
		gap := (all[i] - all[i-1]).Seconds()
		sum += gap
		squares += gap * gap
	}
	mean := sum / float64(len(all)-1)
	deviation := math.Sqrt(squares/float64(len(all)-1) - mean*mean)
	if ratio := deviation / mean; ratio < 0.95 || ratio > 1.05 {
		t.Errorf("the gaps deviate by %.2f of their mean, want 1", ratio)
	}
}

func TestArrivalsDependOnTheSeedAlone(t *testing.T) {
	p := sending(time.Second, 1000, 7)
	first := times(p)
	if !slices.Equal(first, times(p)) {
		t.Error("the same seed gives other times")
	}
	p.seed++
	if slices.Equal(first, times(p)) {
		t.Error("another seed gives the same times")
	}
}

func TestSendIsOpenAndTellsWhenARequestWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sending(time.Second, 100, 3)
		start := time.Now()
		var mu sync.Mutex
		var due []time.Duration
		sent := time.Duration(0)
		send(t.Context(), p, start, func(_ uint64, at time.Time) {
			if now := time.Now(); !now.Equal(at) {
				t.Errorf("due at %v, sent at %v", at, now)
			}
			time.Sleep(10 * time.Second) // So slow that a closed loop would send one request.
			mu.Lock()
			defer mu.Unlock()
			due = append(due, at.Sub(start))
		}, func() { sent = time.Since(start) })
		slices.Sort(due)
		if want := times(p); !slices.Equal(due, want) {
			t.Errorf("sent %d requests, want %d, at the times of the seed", len(due), len(want))
		}
		if sent != time.Second {
			t.Errorf("told after %v that all is sent, want 1 s", sent)
		}
		if took := time.Since(start); took < 10*time.Second {
			t.Errorf("did not wait for what was in flight: returned after %v", took)
		}
	})
}

func TestALateRequestIsDueAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := time.NewTimer(0)
		past := time.Now().Add(-time.Second)
		if !sleepUntil(t.Context(), timer, past) {
			t.Error("a request in the past is not sent")
		}
		if !time.Now().Equal(past.Add(time.Second)) {
			t.Error("waited for a moment that is past")
		}
	})
}

func TestSendStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		sent := 0
		told := false
		send(stop, sending(time.Hour, 1, 1), start, func(uint64, time.Time) { sent++ }, func() { told = true })
		if took := time.Since(start); took != 100*time.Millisecond || !told {
			t.Errorf("stopped after %v", took)
		}
		stopped, halt := context.WithCancel(t.Context())
		halt()
		if sleepUntil(stopped, time.NewTimer(0), time.Now().Add(-time.Second)) {
			t.Error("a late request is sent after the stop")
		}
	})
}
