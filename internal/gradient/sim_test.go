package gradient_test

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// A scenario is a server with so many workers, each call takes one for a while that is drawn; calls beyond wait for one
// at the server, in order. In front of it is a limit with a line, in which nobody waits longer than patience.
type scenario struct {
	seed     uint64
	phases   []phase
	settle   float64       // the part of each phase whose calls do not count
	deadline time.Duration // from a call's beginning to its end, after which nobody wants the answer
	patience time.Duration
}

type phase struct {
	length  time.Duration
	workers int
	service time.Duration // mean
	rate    float64       // of arrivals per second
}

// A limiter is what is tried: it is told of the end of each call, and asked how many there may be.
type limiter interface {
	limit(p phase) int
	ended(now, latency time.Duration, inFlight int)
}

// A tally is what came of the calls that arrived in one phase, when it had settled.
type tally struct{ arrived, good, late, rejected int }

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

func (s scenario) run(l limiter) []tally {
	rng := rand.New(rand.NewPCG(s.seed, 3))
	tallies := make([]tally, len(s.phases))
	var (
		todo              events
		line, server      []*call
		inFlight, working int
		phase             int
		phaseEnd          = s.phases[0].length
		phaseBegan        time.Duration
	)
	exp := func(mean float64) time.Duration { return time.Duration(rng.ExpFloat64() * mean) }
	start := func(now time.Duration) {
		for working < s.phases[phase].workers && len(server) > 0 {
			c := server[0]
			server = server[1:]
			working++
			heap.Push(&todo, event{now + exp(float64(s.phases[phase].service)), 1, c})
		}
	}
	admit := func(now time.Duration) {
		for len(line) > 0 {
			c := line[0]
			if now-c.arrived > s.patience {
				line = line[1:]
				if c.counted {
					tallies[c.phase].rejected++
				}
				continue
			}
			if inFlight >= l.limit(s.phases[phase]) {
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
			if phase+1 == len(s.phases) {
				return tallies
			}
			phase++
			phaseBegan = phaseEnd
			phaseEnd += s.phases[phase].length
		}
		switch e.kind {
		case 0:
			c := &call{phase: phase, arrived: now, counted: float64(now-phaseBegan) > s.settle*float64(s.phases[phase].length) && now < phaseEnd-s.patience-s.deadline}
			if c.counted {
				tallies[phase].arrived++
			}
			line = append(line, c)
			heap.Push(&todo, event{now + exp(float64(time.Second)/s.phases[phase].rate), 0, nil})
		case 1:
			working--
			took := now - e.call.began
			l.ended(now, took, inFlight)
			inFlight--
			if e.call.counted {
				if took <= s.deadline {
					tallies[e.call.phase].good++
				} else {
					tallies[e.call.phase].late++
				}
			}
		}
		admit(now)
	}
	return tallies
}
