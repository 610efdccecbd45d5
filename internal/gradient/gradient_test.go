package gradient_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/gradient"
)

const service = 50 * time.Millisecond // mean, of a call that does not wait

// An adaptive finds the limit.
type adaptive struct{ *gradient.Controller }

func (a adaptive) limit(phase) int { return a.Limit() }
func (a adaptive) ended(now, latency time.Duration, inFlight int) {
	a.Sample(now, latency, inFlight)
}

func newAdaptive() adaptive {
	return adaptive{gradient.New(gradient.Config{Min: 1, Initial: 4, Max: 1000, Window: 100 * time.Millisecond})}
}

// An oracle knows how many workers there are.
type oracle struct{}

func (oracle) limit(p phase) int                       { return p.workers }
func (oracle) ended(time.Duration, time.Duration, int) {}

// A fixed limit never changes.
type fixed int

func (f fixed) limit(phase) int                       { return int(f) }
func (fixed) ended(time.Duration, time.Duration, int) {}

// goodput returns what part of the oracle's answers in time l has, in each phase.
func goodput(s scenario, l limiter) (parts []float64, got []tally) {
	s.deadline, s.patience = 10*service, time.Second
	got = s.run(l)
	for i, want := range s.run(oracle{}) {
		parts = append(parts, float64(got[i].good)/float64(want.good))
	}
	return parts, got
}

func TestGoodput(t *testing.T) {
	const phaseLength = 30 * time.Second
	step := func(rate float64) []phase {
		return []phase{{phaseLength, 100, service, rate}, {phaseLength, 30, service, rate}, {phaseLength, 100, service, rate}}
	}
	var sinking []phase
	for workers := 100; workers >= 30; workers -= 10 {
		sinking = append(sinking, phase{phaseLength / 3, workers, service, 2400})
	}
	sinking[0].length = phaseLength
	for _, c := range []struct {
		name   string
		phases []phase
		least  float64 // in each phase, of the oracle's
		seeds  uint64
	}{
		{"100, 30, 100 workers, of which 80 are busy if they can be", step(1600), 0.95, 2},
		{"100, 30, 100 workers, with more to do than they can", step(2400), 0.95, 2},
		{"workers that go one by one", sinking, 0.93, 1},
		{"calls that take three times as long, while nobody waits more", []phase{
			{phaseLength, 100, service, 2400}, {2 * phaseLength, 100, 3 * service, 2400}, {phaseLength, 100, service, 2400},
		}, 0.90, 1},
		{"3, 1, 3 workers", []phase{{2 * phaseLength, 3, service, 100}, {2 * phaseLength, 1, service, 100}, {2 * phaseLength, 3, service, 100}}, 0.90, 3}, // a window of one worker takes seconds
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range c.seeds {
				parts, got := goodput(scenario{seed: seed, phases: c.phases, settle: 0.1}, newAdaptive())
				for i, part := range parts {
					if part < c.least {
						t.Errorf("seed %d, phase %d: %.3f of what is possible, want %.2f: %+v", seed, i, part, c.least, got[i])
					}
				}
				t.Logf("seed %d: %.3f", seed, parts)
			}
		})
	}

	t.Run("the same with a limit that was right once", func(t *testing.T) { // so there is something to find
		if parts, _ := goodput(scenario{phases: step(2400), settle: 0.1}, fixed(330)); parts[1] > 0.6 {
			t.Errorf("a limit of 330 has %.3f of what is possible with 30 workers", parts[1])
		}
		if parts, _ := goodput(scenario{phases: step(2400), settle: 0.1}, fixed(30)); parts[0] > 0.45 {
			t.Errorf("a limit of 30 has %.3f of what is possible with 100 workers", parts[0])
		}
	})
}

func TestNothingIsRefusedInASteadyState(t *testing.T) {
	for seed := range uint64(2) {
		l := newAdaptive()
		_, got := goodput(scenario{seed: seed, settle: 0.3, phases: []phase{
			{30 * time.Second, 100, service, 1600}, {30 * time.Second, 30, service, 1600}, {30 * time.Second, 100, service, 1600},
		}}, l)
		if got[0].rejected+got[2].rejected > 0 {
			t.Errorf("seed %d: %+v", seed, got)
		}
	}
}

// TestNoDrift keeps a server busy for five minutes: the latency under load is not taken for the normal one.
func TestNoDrift(t *testing.T) {
	l := newAdaptive()
	parts, got := goodput(scenario{settle: 0.1, phases: []phase{{5 * time.Minute, 50, service, 1300}}}, l)
	if parts[0] < 0.95 || l.Limit() < 40 || l.Limit() > 200 || l.Base() < service/2 || l.Base() > 2*service {
		t.Errorf("%.3f, limit %d, base %v: %+v", parts[0], l.Limit(), l.Base(), got)
	}
}

func TestBounds(t *testing.T) {
	c := gradient.New(gradient.Config{Min: 3, Initial: 5, Max: 7, Window: time.Second})
	now := time.Duration(0)
	for range 10_000 {
		now += 10 * time.Millisecond
		c.Sample(now, 10*time.Millisecond, c.Limit())
		if c.Limit() < 5 || c.Limit() > 7 {
			t.Fatalf("fast calls: %d", c.Limit())
		}
	}
	for i := range 10_000 {
		now += 10 * time.Millisecond
		c.Sample(now, time.Duration(i)*time.Millisecond, c.Limit())
	}
	if c.Limit() < 3 || c.Limit() > 4 { // 3, or a little higher to look
		t.Errorf("slow calls: %d", c.Limit())
	}
}

func TestQuietTimesChangeNothing(t *testing.T) {
	c := gradient.New(gradient.Config{Min: 1, Initial: 100, Max: 1000, Window: time.Second})
	now := time.Duration(0)
	for range 10_000 {
		now += 10 * time.Millisecond
		c.Sample(now, 10*time.Millisecond, 1)
	}
	if c.Limit() != 100 || c.Base().Round(time.Millisecond) != 10*time.Millisecond {
		t.Errorf("limit %d, base %v", c.Limit(), c.Base())
	}
	for range 100 { // an hour between two calls
		now += time.Hour
		c.Sample(now, 0, 1)
	}
	if c.Limit() != 100 {
		t.Errorf("limit %d", c.Limit())
	}
}
