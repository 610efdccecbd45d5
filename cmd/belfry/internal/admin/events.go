package admin

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// maxReaders is how many pages may be open at a time.
	maxReaders = 64
	// stall is how long a reader may take for one event.
	stall = 10 * time.Second
)

// An opening is the first event of a stream, and what the page begins with: everything.
type opening struct {
	State    Snapshot `json:"state"`
	Timeline []Point  `json:"timeline"`
	Capacity int      `json:"capacity"` // of the time line, in points
	Step     int64    `json:"step_ms"`  // between two of them
}

// An update is what follows once a second.
type update struct {
	State Snapshot `json:"state"`
	Point Point    `json:"point"`
}

// A stream gives the same bytes to all readers. Whoever publishes waits for nobody, and a reader that is behind sees the latest event
// next, not all that it has missed.
type stream struct {
	mu      sync.Mutex // guards what follows
	readers int
	latest  []byte
	next    chan struct{} // closed by the event after latest
}

func newStream() *stream { return &stream{next: make(chan struct{})} }

// heard reports whether anybody listens.
func (s *stream) heard() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readers > 0
}

func (s *stream) publish(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = b
	close(s.next)
	s.next = make(chan struct{})
}

// join returns what is closed by the first event after it, and false if there are too many readers already.
func (s *stream) join() (<-chan struct{}, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers == maxReaders {
		return nil, false
	}
	s.readers++
	return s.next, true
}

func (s *stream) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers--
}

// read returns the latest event, and what is closed by the one after.
func (s *stream) read() ([]byte, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest, s.next
}

func (a *Admin) opening() opening {
	return opening{State: a.now(), Timeline: a.meter.history(), Capacity: timeline, Step: tick.Milliseconds()}
}

// serveEvents is a stream of server-sent events: one named opening, then one named state in a second.
func (a *Admin) serveEvents(w http.ResponseWriter, r *http.Request) {
	next, ok := a.stream.join()
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("503 Service Unavailable: %d readers already", maxReaders), http.StatusServiceUnavailable)
		return
	}
	defer a.stream.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy in between must not collect them
	out := http.NewResponseController(w)
	for b := event("opening", a.opening()); ; {
		// Not all writers have deadlines; those of net/http do.
		_ = out.SetWriteDeadline(time.Now().Add(stall))
		if _, err := w.Write(b); err != nil {
			return
		}
		if out.Flush() != nil {
			return
		}
		select {
		case <-next:
			b, next = a.stream.read()
		case <-r.Context().Done():
			return
		case <-a.over:
			return
		}
	}
}

// event returns v as a server-sent event. JSON has no line breaks.
func event(name string, v any) []byte {
	return bytes.Join([][]byte{[]byte("event: " + name + "\ndata: "), encode(v), []byte("\n\n")}, nil)
}
