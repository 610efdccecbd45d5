package gradient_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/capacity"
	"github.com/belfry-go/belfry/internal/gradient"
)

const service = 50 * time.Millisecond // mean, of a call that does not wait

// An adaptive finds the limit.
type adaptive struct{ *gradient.Controller }

func (a adaptive) Limit(capacity.Phase) int { return a.Controller.Limit() }
func (a adaptive) Ended(now, latency time.Duration, inFlight int) {
	a.Sample(now, latency, inFlight)
}

func newAdaptive() adaptive {
	return adaptive{gradient.New(gradient.Config{Min: 1, Initial: 4, Max: 1000, Window: 100 * time.Millisecond})}
}

// goodput returns what part of the oracle's answers in time l has, in each phase.
func goodput(s capacity.Scenario, l capacity.Limiter) (parts []float64, got []capacity.Tally) {
	s.Deadline, s.Patience = 10*service, time.Second
	return s.Goodput(l)
}

// during is a phase.
func during(length time.Duration, workers int, service time.Duration, rate float64) capacity.Phase {
	return capacity.Phase{Length: length, Workers: workers, Service: service, Rate: rate}
}

func TestGoodput(t *testing.T) {
	const phaseLength = 30 * time.Second
	step := func(rate float64) []capacity.Phase {
		return []capacity.Phase{during(phaseLength, 100, service, rate), during(phaseLength, 30, service, rate), during(phaseLength, 100, service, rate)}
	}
	var sinking []capacity.Phase
	for workers := 100; workers >= 30; workers -= 10 {
		sinking = append(sinking, during(phaseLength/3, workers, service, 2400))
	}
	sinking[0].Length = phaseLength
	for _, c := range []struct {
		name   string
		phases []capacity.Phase
		least  float64 // in each phase, of the oracle's
		seeds  uint64
	}{
		{"100, 30, 100 workers, of which 80 are busy if they can be", step(1600), 0.95, 2},
		{"100, 30, 100 workers, with more to do than they can", step(2400), 0.95, 2},
		{"workers that go one by one", sinking, 0.93, 1},
		{"calls that take three times as long, while nobody waits more", []capacity.Phase{
			during(phaseLength, 100, service, 2400), during(2*phaseLength, 100, 3*service, 2400), during(phaseLength, 100, service, 2400),
		}, 0.90, 1},
		{"3, 1, 3 workers", []capacity.Phase{during(2*phaseLength, 3, service, 100), during(2*phaseLength, 1, service, 100), during(2*phaseLength, 3, service, 100)}, 0.90, 3}, // a window of one worker takes seconds
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range c.seeds {
				parts, got := goodput(capacity.Scenario{Seed: seed, Phases: c.phases, Settle: 0.1}, newAdaptive())
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
		if parts, _ := goodput(capacity.Scenario{Phases: step(2400), Settle: 0.1}, capacity.Fixed(330)); parts[1] > 0.6 {
			t.Errorf("a limit of 330 has %.3f of what is possible with 30 workers", parts[1])
		}
		if parts, _ := goodput(capacity.Scenario{Phases: step(2400), Settle: 0.1}, capacity.Fixed(30)); parts[0] > 0.45 {
			t.Errorf("a limit of 30 has %.3f of what is possible with 100 workers", parts[0])
		}
	})
}

func TestNothingIsRefusedInASteadyState(t *testing.T) {
	for seed := range uint64(2) {
		l := newAdaptive()
		_, got := goodput(capacity.Scenario{Seed: seed, Settle: 0.3, Phases: []capacity.Phase{
			during(30*time.Second, 100, service, 1600), during(30*time.Second, 30, service, 1600), during(30*time.Second, 100, service, 1600),
		}}, l)
		if got[0].Rejected+got[2].Rejected > 0 {
			t.Errorf("seed %d: %+v", seed, got)
		}
	}
}

// TestNoDrift keeps a server busy for five minutes: the latency under load is not taken for the normal one.
func TestNoDrift(t *testing.T) {
	l := newAdaptive()
	parts, got := goodput(capacity.Scenario{Settle: 0.1, Phases: []capacity.Phase{during(5*time.Minute, 50, service, 1300)}}, l)
	if parts[0] < 0.95 || l.Controller.Limit() < 40 || l.Controller.Limit() > 200 || l.Base() < service/2 || l.Base() > 2*service {
		t.Errorf("%.3f, limit %d, base %v: %+v", parts[0], l.Controller.Limit(), l.Base(), got)
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
