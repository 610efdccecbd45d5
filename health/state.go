package health

import "time"

// A state is what the results of probes have said so far. It knows no clock: whoever has a result brings the time.
type state struct {
	unhealthy, healthy int // how many results in a row change it

	well     bool
	since    time.Time
	unproven bool // no probe has succeeded, and the first that does is enough
	good     bool // the latest result
	run      int  // how many were like it, in a row
	err      error
	probes   uint64
	failures uint64
}

func begin(now time.Time, cfg *Config) state {
	return state{
		unhealthy: cfg.Unhealthy,
		healthy:   cfg.Healthy,
		well:      !cfg.StartUnhealthy,
		unproven:  cfg.StartUnhealthy,
		since:     now,
	}
}

// result notes the result of a probe and reports whether it has changed the state.
func (s *state) result(now time.Time, err error) (changed bool) {
	good := err == nil
	if good != s.good {
		s.good, s.run = good, 0
	}
	s.run++
	s.probes++
	if !good {
		s.failures++
		s.err = err
	}
	if changed = good != s.well && s.run >= s.needed(); changed {
		s.well, s.since, s.unproven = good, now, false
	}
	if s.well && good {
		s.err = nil
	}
	return changed
}

// needed is how many results like the latest change the state.
func (s *state) needed() int {
	switch {
	case !s.good:
		return s.unhealthy
	case s.unproven:
		return 1
	}
	return s.healthy
}

// doubt reports whether to ask again soon: unless twice as many results in a row agree with the state as would change it to that. As
// many that contradict have changed it.
func (s *state) doubt() bool { return s.run < 2*s.needed() }
