package timeout

import (
	"sync/atomic"
	"time"
)

// A clock is time.Now at three quarters of the cost: the monotonic clock is read alone, and added to a time that both clocks said a moment
// ago. So what it returns has the time of day too, for those who send deadlines elsewhere, and a step of that shows
// within the moment.
type clock struct{ latest atomic.Pointer[time.Time] }

// moment is how long a time is added to. A new one is an allocation.
const moment = time.Second

func (c *clock) now() time.Time {
	if latest := c.latest.Load(); latest != nil {
		if since := time.Since(*latest); since >= 0 && since < moment {
			return latest.Add(since)
		}
	}
	now := time.Now()
	c.latest.Store(&now)
	return now
}
