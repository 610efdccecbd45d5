package lab

import (
	"strconv"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
	"github.com/belfry-go/belfry/internal/capacity"
	"github.com/belfry-go/belfry/internal/gradient"
)

// What limits a server whose capacity changes.
const (
	adaptiveLimit = "adaptive"
	fixedLimit    = "fixed-" // and the limit
)

// A found limit is what limit.Adaptive finds.
type found struct{ *gradient.Controller }

func (f found) Limit(capacity.Phase) int { return f.Controller.Limit() }

func (f found) Ended(now, latency time.Duration, inFlight int) { f.Sample(now, latency, inFlight) }

func limiter(name string) capacity.Limiter {
	if text, ok := strings.CutPrefix(name, fixedLimit); ok {
		n, _ := strconv.Atoi(text) // the names are those of the scenario
		return capacity.Fixed(n)
	}
	return found{gradient.New(gradient.Config{Min: 1, Initial: 4, Max: 1000, Window: 100 * time.Millisecond})}
}

func adaptive() Scenario {
	s := Scenario{
		Name: "adaptive", Unit: "ms", Policies: []string{fixedLimit + "30", fixedLimit + "100", fixedLimit + "330", adaptiveLimit},
		About: "a limit before 100, then 30, then 100 workers of 50 ms: answers in time, as a part of those of a limit that knows",
	}
	for _, load := range []struct {
		name string
		rate float64
	}{{"busy", 1600}, {"overloaded", 2400}} {
		s.Parts = append(s.Parts, Part{Name: load.name, slow: true, run: func(p sim.Policy, seed uint64) Outcome {
			return stepped(p.Name, load.rate, seed)
		}})
	}
	return s
}

// stepped is the capacity that goes down and up again. A tenth of each phase does not count, where refusals are counted a third.
func stepped(name string, rate float64, seed uint64) Outcome {
	var phases []capacity.Phase
	for _, workers := range []int{100, 30, 100} {
		phases = append(phases, capacity.Phase{Length: 30 * time.Second, Workers: workers, Service: 50 * time.Millisecond, Rate: rate})
	}
	s := capacity.Scenario{Seed: seed, Phases: phases, Settle: 0.1, Deadline: 500 * time.Millisecond, Patience: time.Second}
	parts, _ := s.Goodput(limiter(name))
	s.Settle = 1. / 3
	got := s.Run(limiter(name))
	least := min(parts[0], parts[1], parts[2])
	return Outcome{Figures: []Figure{
		{"100_first", parts[0]},
		{"30", parts[1]},
		{"100_again", parts[2]},
		{"least", least},
		{"refused_at_100", float64(got[0].Rejected+got[2].Rejected) / float64(got[0].Arrived+got[2].Arrived)},
	}}
}
