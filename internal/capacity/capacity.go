// Package capacity simulates a server of which the capacity changes, behind a limit, in virtual time and by a seed. It is what
// adaptive limits are tested and shown with.
package capacity

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// A Scenario is a server with so many workers, each call takes one for a while that is drawn; calls beyond wait for one
// at the server, in order. In front of it is a limit with a line, in which nobody waits longer than patience.
type Scenario struct {
	Seed     uint64
	Phases   []Phase
	Settle   float64       // the part of each phase whose calls do not count
	Deadline time.Duration // from a call's beginning to its end, after which nobody wants the answer
	Patience time.Duration
}

// A Phase is a time in which nothing changes.
type Phase struct {
	Length  time.Duration
	Workers int
	Service time.Duration // mean
	Rate    float64       // of arrivals per second
}

// A Limiter is what is tried: it is told of the end of each call, and asked how many there may be.
type Limiter interface {
	Limit(p Phase) int
	Ended(now, latency time.Duration, inFlight int)
}

// A Tally is what came of the calls that arrived in one phase, when it had settled.
type Tally struct{ Arrived, Good, Late, Rejected int }

type event struct {
	at   time.Duration
	kind int // arrival, completion
	call *call
}

type call struct {
	phase          int
	arrived, began time.Duration
	counted        bool
}

type events []event

func (h events) Len() int           { return len(h) }
func (h events) Less(i, j int) bool { return h[i].at < h[j].at }
func (h events) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)        { *h = append(*h, x.(event)) }
func (h *events) Pop() any {
	e := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return e
}

// Run returns what came of each phase.
func (s Scenario) Run(l Limiter) []Tally {
	rng := rand.New(rand.NewPCG(s.Seed, 3))
	tallies := make([]Tally, len(s.Phases))
	var (
		todo              events
		line, server      []*call
		inFlight, working int
		phase             int
		phaseEnd          = s.Phases[0].Length
		phaseBegan        time.Duration
	)
	exp := func(mean float64) time.Duration { return time.Duration(rng.ExpFloat64() * mean) }
	start := func(now time.Duration) {
		for working < s.Phases[phase].Workers && len(server) > 0 {
			c := server[0]
			server = server[1:]
			working++
			heap.Push(&todo, event{now + exp(float64(s.Phases[phase].Service)), 1, c})
		}
	}
	admit := func(now time.Duration) {
		for len(line) > 0 {
			c := line[0]
			if now-c.arrived > s.Patience {
				line = line[1:]
				if c.counted {
					tallies[c.phase].Rejected++
				}
				continue
			}
			if inFlight >= l.Limit(s.Phases[phase]) {
				break
			}
			line = line[1:]
			c.began = now
			inFlight++
			server = append(server, c)
		}
		start(now)
	}
	heap.Push(&todo, event{0, 0, nil})
	for len(todo) > 0 {
		e := heap.Pop(&todo).(event)
		now := e.at
		for now >= phaseEnd {
			if phase+1 == len(s.Phases) {
				return tallies
			}
			phase++
			phaseBegan = phaseEnd
			phaseEnd += s.Phases[phase].Length
		}
		switch e.kind {
		case 0:
			c := &call{phase: phase, arrived: now, counted: float64(now-phaseBegan) > s.Settle*float64(s.Phases[phase].Length) && now < phaseEnd-s.Patience-s.Deadline}
			if c.counted {
				tallies[phase].Arrived++
			}
			line = append(line, c)
			heap.Push(&todo, event{now + exp(float64(time.Second)/s.Phases[phase].Rate), 0, nil})
		case 1:
			working--
			took := now - e.call.began
			l.Ended(now, took, inFlight)
			inFlight--
			if e.call.counted {
				if took <= s.Deadline {
					tallies[e.call.phase].Good++
				} else {
					tallies[e.call.phase].Late++
				}
			}
		}
		admit(now)
	}
	return tallies
}

// An Oracle knows how many workers there are.
type Oracle struct{}

// Limit is the number of workers.
func (Oracle) Limit(p Phase) int { return p.Workers }

// Ended does nothing.
func (Oracle) Ended(time.Duration, time.Duration, int) {}

// A Fixed limit never changes.
type Fixed int

// Limit is always the same.
func (f Fixed) Limit(Phase) int { return int(f) }

// Ended does nothing.
func (Fixed) Ended(time.Duration, time.Duration, int) {}

// Goodput returns what part of the oracle's answers in time l has, in each phase.
func (s Scenario) Goodput(l Limiter) (parts []float64, got []Tally) {
	got = s.Run(l)
	for i, want := range s.Run(Oracle{}) {
		parts = append(parts, float64(got[i].Good)/float64(want.Good))
	}
	return parts, got
}
