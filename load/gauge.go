package load

import (
	"slices"
	"sync"
	"time"
)

// A Gauge is what a server knows of its own load: how many requests it has in flight, and how long such ones took that came when
// there were about so many. That is the server's half of Prequal (Wydrowski et al., Load is not what you should balance, NSDI 2024).
//
// The zero Gauge is ready to use. Its methods may be called concurrently.
type Gauge struct {
	mu       sync.Mutex // guards the rest
	inFlight int
	recent   []samples // by what was in flight, in steps
}

// samples are the latest latencies.
type samples struct {
	of   [15]int64
	n    int // how many there are
	next int // where the next goes
}

const (
	exactly = 32  // requests in flight that have samples of their own; beyond, eight steps to each doubling
	perStep = 8   //
	most    = 200 // steps; the last is for all above
)

// step returns the step of the gauge that n in flight belong to.
func step(n int) int {
	if n < exactly {
		return n
	}
	above := bucketOf(float64(n)) - bucketOf(exactly)
	return min(exactly+above, most-1)
}

// Begin notes that a request has come, and returns how many were in flight before it, for End.
func (g *Gauge) Begin() (before int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before = g.inFlight
	g.inFlight++
	return before
}

// End notes that a request has left for which Begin returned before, and that it took so long.
func (g *Gauge) End(before int, took time.Duration) {
	i := step(before)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	for len(g.recent) <= i {
		g.recent = append(g.recent, samples{})
	}
	g.recent[i].add(took.Microseconds())
}

// Drop notes that a request has left about which there is nothing to learn: it failed, or was upgraded.
func (g *Gauge) Drop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
}

// Report returns what there is to tell a client: the latency is the median of up to fifteen recent ones that began with as
// many in flight as there are now, or as near as there are any; 0 before the first.
func (g *Gauge) Report() Report {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Report{InFlight: float64(g.inFlight), Latency: time.Duration(g.median()) * time.Microsecond}
}

// InFlight returns how many requests are in flight.
func (g *Gauge) InFlight() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inFlight
}

// median is that of the nearest step with samples. mu is held.
func (g *Gauge) median() int64 {
	at := step(g.inFlight)
	for off := range most {
		for _, i := range [...]int{at - off, at + off} {
			if i >= 0 && i < len(g.recent) && g.recent[i].n > 0 {
				return g.recent[i].median()
			}
		}
	}
	return 0
}

func (s *samples) add(took int64) {
	s.of[s.next] = took
	s.next = (s.next + 1) % len(s.of)
	s.n = min(s.n+1, len(s.of))
}

func (s *samples) median() int64 {
	sorted := s.of
	slices.Sort(sorted[:s.n])
	return sorted[(s.n-1)/2]
}
