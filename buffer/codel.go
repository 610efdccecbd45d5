package buffer

import "time"

// A codel decides how long calls may wait and in which order, by how long somebody has been waiting. The time is always an
// argument.
type codel struct {
	target, interval time.Duration
	standing         bool          // the line is not empty
	since            time.Duration // when it last was
}

// join says that somebody gets in line at now, and returns for how long he may wait there.
func (c *codel) join(now time.Duration) time.Duration {
	if !c.standing {
		c.standing, c.since = true, now
	}
	if c.overloaded(now) {
		return c.target
	}
	return c.interval
}

// empty says that nobody is left in line.
func (c *codel) empty() { c.standing = false }

// overloaded reports whether the line has not been empty for longer than the interval.
func (c *codel) overloaded(now time.Duration) bool {
	return c.standing && now-c.since > c.interval
}
