package breaker

import "github.com/belfry-go/belfry"

// Probed returns the inner permit if permit is a probe's.
func Probed(permit belfry.Permit) (inner belfry.Permit, ok bool) {
	p, ok := permit.Value().(*probe)
	if !ok {
		return belfry.Permit{}, false
	}
	return p.inner, true
}

// Locked reports whether somebody holds the breaker's lock.
func (s *Service[Req, Res]) Locked() bool {
	if !s.core.mu.TryLock() {
		return true
	}
	s.core.mu.Unlock()
	return false
}
