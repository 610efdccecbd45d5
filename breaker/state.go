package breaker

import (
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/backoff"
)

// A State is what a breaker does with calls.
type State uint8

const (
	// Closed lets all calls through.
	Closed State = iota
	// Open lets none through, until it is time for a probe and somebody comes.
	Open
	// HalfOpen lets one through at a time, the probe, until the end of one says how the service is.
	HalfOpen
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	}
	return "unknown"
}

// A state is a breaker without a clock, a lock or chance: now is the time since it was made, and u a random number in
// [0, 1). Nothing of it is safe for concurrent use.
//
// There is a probe only while it is half-open, and one at most. A probe is over when its end was reported, when it was given back
// or up, and when the state changes; what is reported about it later is not heard.
type state struct {
	rules rules

	now   State
	since time.Duration
	// turn counts the changes. A call counts if it ends in the turn in which it began.
	turn uint64

	run    int           // failures in a row, while closed
	recent window        // while closed, if there is a ratio
	asked  time.Duration // until when the service asked to be left alone, by its latest failures

	failed int           // probes in a row
	until  time.Duration // when a probe may go, while open
	probe  uint64        // the number of the one that is out, 0 if none is
	taken  time.Duration // when it was let through
	probes uint64        // so many were
	spared uint64        // times that it was not to open
}

// rules are what a state needs of a Config.
type rules struct {
	consecutive   int // 0: they do not count
	ratio         float64
	minCalls      int
	backoff       backoff.Exponential
	maxRetryAfter time.Duration
	probeTimeout  time.Duration
	may           func(now time.Duration) bool // open; nil: always
}

func begin(cfg *Config) state {
	return state{
		rules: rules{
			consecutive:   cfg.Consecutive,
			ratio:         cfg.Ratio,
			minCalls:      cfg.MinCalls,
			backoff:       cfg.backoff(),
			maxRetryAfter: cfg.MaxRetryAfter,
			probeTimeout:  cfg.ProbeTimeout,
		},
		recent: window{step: cfg.Window / steps},
	}
}

// clean reports whether a success would change nothing.
func (s *state) clean() bool { return s.run == 0 && s.rules.ratio == 0 && s.asked == 0 }

// ended notes the end of a call that began in the present turn, closed.
func (s *state) ended(now time.Duration, out belfry.Outcome, u float64) {
	switch out.Kind {
	case belfry.Success:
		s.run, s.asked = 0, 0
		if s.rules.ratio > 0 {
			s.recent.add(now, false)
		}
	case belfry.Failure:
		s.run++
		s.ask(now, out.RetryAfter)
		if s.rules.ratio > 0 {
			s.recent.add(now, true)
		}
		switch {
		case !s.tooMany():
		case s.rules.may == nil || s.rules.may(now):
			s.open(now, u)
		default:
			s.spared++
		}
	case belfry.Ignored:
	}
}

func (s *state) tooMany() bool {
	if s.rules.consecutive > 0 && s.run >= s.rules.consecutive {
		return true
	}
	// Divided, because 0.1 × 30 is more than 3 in binary.
	return s.rules.ratio > 0 && s.recent.calls >= s.rules.minCalls &&
		float64(s.recent.failures)/float64(s.recent.calls) >= s.rules.ratio
}

// ask notes how long the service wants to be left alone.
func (s *state) ask(now, retryAfter time.Duration) {
	if retryAfter > 0 {
		s.asked = max(s.asked, now+min(retryAfter, s.rules.maxRetryAfter))
	}
}

// open begins a pause: the back-off's, or as long as the service asked for.
func (s *state) open(now time.Duration, u float64) {
	s.until = max(now+s.rules.backoff.Delay(s.failed, u), s.asked)
	s.change(Open, now)
}

// trip opens the breaker for d at least.
func (s *state) trip(now, d time.Duration, u float64) {
	if s.now == Open { // until may be later already
		s.until = max(s.until, now+d)
		return
	}
	s.asked = max(s.asked, now+max(d, 0))
	s.open(now, u)
}

// close forgets all about failures.
func (s *state) close(now time.Duration) {
	s.failed = 0
	s.change(Closed, now)
}

func (s *state) change(to State, now time.Duration) {
	if to != s.now {
		s.now, s.since = to, now
	}
	s.turn++
	s.probe = 0
	s.run, s.asked = 0, 0
	s.recent.forget()
}

// free reports whether a probe may go at now.
func (s *state) free(now time.Duration) bool {
	switch s.now {
	case Open:
		return now >= s.until
	case HalfOpen:
		return s.probe == 0 || now >= s.taken+s.rules.probeTimeout
	case Closed:
	}
	return false
}

// next is when a probe may go, if it does not before. It is not asked while the breaker is closed.
func (s *state) next() time.Duration {
	switch {
	case s.now == Open:
		return s.until
	case s.probe != 0:
		return s.taken + s.rules.probeTimeout
	}
	return 0
}

// take lets a probe through, which free has allowed, and returns its number.
func (s *state) take(now time.Duration) uint64 {
	if s.now == Open {
		s.change(HalfOpen, now)
	}
	s.probes++
	s.probe, s.taken = s.probes, now
	return s.probe
}

// returned gives probe n back, of which nothing was learned: the next may go at once.
func (s *state) returned(n uint64) {
	if s.out(n) {
		s.probe = 0
	}
}

// out reports whether n is the probe that counts.
func (s *state) out(n uint64) bool { return n != 0 && s.probe == n }

// probed notes how probe n ended.
func (s *state) probed(now time.Duration, n uint64, out belfry.Outcome, u float64) {
	if !s.out(n) {
		return
	}
	switch out.Kind {
	case belfry.Success:
		s.close(now)
	case belfry.Failure:
		s.failed++
		s.ask(now, out.RetryAfter)
		s.open(now, u)
	default:
		s.returned(n)
	}
}
