package sim

import (
	"math/rand/v2"

	"github.com/belfry-go/belfry/load"
)

// A Server is what answers.
type Server struct {
	// Latency is how long a request takes, in µs, when the server is well. It is worked on alone if Queue, first come first
	// served; else nothing else in flight matters.
	Latency Latency
	Queue   bool
	// Lost are times in which one request gets no answer, the first that comes.
	Lost []Span
	// Windows are times when the server is not well. The first that is open counts.
	Windows []Window
	// Here is when clients know of the server. Nil means always.
	Here []Span
}

// A Span is the time from From until before Until.
type Span struct{ From, Until int64 }

// Has reports whether now is within s.
func (s Span) Has(now int64) bool { return s.From <= now && now < s.Until }

// A Window is a time when a server is not well.
type Window struct {
	Span
	// Slow is how many times longer requests take that are begun now. 0 means once.
	Slow float64
	// Fails is the share of requests that fail, after FailsIn µs.
	Fails   float64
	FailsIn float64
	// RetryAfter is for how long failures ask to be left alone, in µs.
	RetryAfter int64
	// Hangs says that all work stands still.
	Hangs bool
}

type server struct {
	Server
	inside int // requests that are with it
	gauge  load.Gauge
	free   int64 // when the queue will be empty
}

// serve returns when a request that comes now is over, and how.
func (s *server) serve(now int64, random *rand.Rand) (at int64, class load.Class) {
	begins := now
	if s.Queue {
		begins = max(now, s.free)
	}
	took, class := s.work(begins, random)
	if s.loses(now) {
		return 2 * Never, load.Success
	}
	ends := s.delayed(begins, begins+took)
	if s.Queue {
		s.free = ends
	}
	return ends, class
}

func (s *server) loses(now int64) bool {
	if len(s.Lost) == 0 || !s.Lost[0].Has(now) {
		return false
	}
	s.Lost = s.Lost[1:]
	return true
}

// Answer returns when a request is over that comes now, and how, if nothing is lost and there is no queue.
func (s *Server) Answer(now int64, random *rand.Rand) (at int64, class load.Class) {
	took, class := s.work(now, random)
	return s.delayed(now, now+took), class
}

// work returns how long a request takes that is begun now, and how it ends.
func (s *Server) work(now int64, random *rand.Rand) (took int64, class load.Class) {
	latency := s.Latency(random)
	for i := range s.Windows {
		w := &s.Windows[i]
		if !w.Has(now) || w.Hangs {
			continue
		}
		if w.Fails > 0 && (w.Fails >= 1 || random.Float64() < w.Fails) {
			return int64(w.FailsIn + 0.5), load.Failure
		}
		if w.Slow > 0 {
			latency *= w.Slow
		}
		break
	}
	return int64(latency + 0.5), load.Success
}

// asksFor returns for how long the answer asks to be left alone to a request that is begun now.
func (s *server) asksFor(now int64, class load.Class) int64 {
	if class != load.Failure {
		return 0
	}
	for i := range s.Windows {
		if w := &s.Windows[i]; w.Has(now) && !w.Hangs {
			return w.RetryAfter
		}
	}
	return 0
}

// delayed returns when work is over that would be at ends, if it did not stand still in between.
func (s *Server) delayed(begins, ends int64) int64 {
	for i := range s.Windows {
		w := &s.Windows[i]
		if w.Hangs && begins < w.Until && ends > w.From {
			ends += w.Until - max(begins, w.From)
		}
	}
	return ends
}
