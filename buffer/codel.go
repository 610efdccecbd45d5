package buffer

import "time"

// A codel decides how long calls may wait and in which order, by how long somebody has been waiting. The time is always an
// argument.
type codel struct {
	target, interval time.Duration
	since            time.Time // when the line was last empty; zero while it is
}

// join says that somebody gets in line at now, and returns for how long he may wait there.
func (c *codel) join(now time.Time) time.Duration {
	if c.since.IsZero() {
		c.since = now
	}
	if c.overloaded(now) {
		return c.target
	}
	return c.interval
}

// empty says that nobody is left in line.
func (c *codel) empty() { c.since = time.Time{} }

// overloaded reports whether the line has not been empty for longer than the interval.
func (c *codel) overloaded(now time.Time) bool {
	return !c.since.IsZero() && now.Sub(c.since) > c.interval
}
