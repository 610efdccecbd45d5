package buffer

import (
	"math"
	"testing"
	"time"
)

func TestCodel(t *testing.T) {
	const ms = time.Millisecond
	const begin = 12 * time.Hour
	c := codel{target: 5 * ms, interval: 100 * ms}
	for _, step := range []struct {
		at         time.Duration
		empty      bool // instead of somebody's getting in line
		patience   time.Duration
		overloaded bool // afterwards
	}{
		{at: 0, patience: 100 * ms},
		{at: 99 * ms, patience: 100 * ms},
		{at: 100 * ms, patience: 100 * ms},
		{at: 100*ms + 1, patience: 5 * ms, overloaded: true},
		{at: time.Hour, patience: 5 * ms, overloaded: true},
		{at: time.Hour, empty: true},
		{at: time.Hour, patience: 100 * ms},
		{at: time.Hour + 50*ms, empty: true},
		{at: 2 * time.Hour, patience: 100 * ms},
		{at: 2*time.Hour + 101*ms, patience: 5 * ms, overloaded: true},
	} {
		now := begin + step.at
		if step.empty {
			c.empty()
		} else if got := c.join(now); got != step.patience {
			t.Errorf("at %v: %v, want %v", step.at, got, step.patience)
		}
		if got := c.overloaded(now); got != step.overloaded {
			t.Errorf("at %v: overloaded %v, want %v", step.at, got, step.overloaded)
		}
	}
}

func TestUntil(t *testing.T) {
	for _, c := range []struct {
		now, patience time.Duration
		want          ticket
	}{
		{now: time.Hour, want: endless},
		{now: time.Hour, patience: time.Second, want: ticket(time.Hour + time.Second)},
		{now: time.Hour, patience: math.MaxInt64, want: endless},
		{now: -time.Hour, patience: math.MaxInt64, want: endless - ticket(time.Hour)},
	} {
		if got := until(c.now, c.patience); got != c.want {
			t.Errorf("%v from %v on: until %d, want %d", c.patience, c.now, got, c.want)
		}
	}
}
