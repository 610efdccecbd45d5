package reconnect

import "time"

// A State is what there is of a service.
type State uint8

const (
	// Idle is the zero State: nobody has asked for the service yet.
	Idle State = iota
	// Connecting means that it is being made.
	Connecting
	// Ready means that it was made. Whether there is room is for itself to say.
	Ready
	// BackingOff means that the last attempt has failed, and the next is not due yet.
	BackingOff
	// Closed means that there will be none again.
	Closed
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case Idle:
		return "idle"
	case Connecting:
		return "connecting"
	case Ready:
		return "ready"
	case BackingOff:
		return "backing off"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// Stats is what there is to know about a [Service], at one moment.
type Stats struct {
	State State
	// Since is when that began.
	Since time.Time
	// LastError is the [*AttemptError] of the latest attempt that has ended. It is nil once there is a service.
	LastError error
	// Attempts counts the calls of make.
	Attempts uint64
	// Made counts the services that came of them.
	Made uint64
	// Lost counts those of them that were lost.
	Lost uint64
	// Failures is how many attempts in a row have failed, or were lost unused.
	Failures int
	// RetryIn is the time until the next attempt, 0 unless the state is BackingOff.
	RetryIn time.Duration
}

// Stats returns what there is to know now.
func (s *Service[Req, Res]) Stats() Stats {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	if m := s.current.Load(); m != nil && m.proven.Load() {
		stats.Failures = 0
	}
	if stats.State == BackingOff {
		stats.RetryIn = max(0, s.next.Sub(now))
	}
	return stats
}
