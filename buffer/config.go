package buffer

import (
	"fmt"
	"time"
)

// Target and Interval of CoDel unless a Config says otherwise: what "Fail at Scale" found to work across a wide set of
// services.
const (
	DefaultTarget   = 5 * time.Millisecond
	DefaultInterval = 100 * time.Millisecond
)

// Order says which of the waiting calls is next. The package documentation defines each.
type Order uint8

const (
	// FIFO is the zero Order: the oldest first.
	FIFO Order = iota
	// LIFO is the newest first. The oldest may wait for as long as newer ones keep coming, so they need a deadline:
	// MaxWait, or that of their contexts.
	LIFO
	// CoDel is the oldest first, but while the room is overloaded the newest, and then for short waits only.
	CoDel
)

// String returns the order's name.
func (o Order) String() string {
	switch o {
	case FIFO:
		return "FIFO"
	case LIFO:
		return "LIFO"
	case CoDel:
		return "CoDel"
	}
	return fmt.Sprintf("Order(%d)", uint8(o))
}

// Config is how a room treats those who wait in it. The zero Config is first come, first served, for as long as their
// contexts allow.
type Config struct {
	// Order says who is next. Zero means FIFO.
	Order Order

	// MaxWait is the longest that Acquire waits for a seat, and the longest that Call then waits in the room. Zero means
	// that contexts alone, and CoDel, bound the wait.
	MaxWait time.Duration

	// Target is the longest that a call waits which gets in line while the room is overloaded, and is not above
	// Interval. Zero means DefaultTarget. Only CoDel uses it.
	Target time.Duration

	// Interval is how long the line must not have been empty for the room to be overloaded, and the longest that a call
	// waits which gets in line before. Zero means DefaultInterval. Only CoDel uses it.
	Interval time.Duration

	// OnAdmit is told when a call has a permit of the inner service, with how long it took to get one, the wait for a seat
	// not included. Nil means nobody.
	//
	// Both hooks are called by the caller's goroutine, so by several at once, without a lock, when the seat is free again and
	// the next in line has its turn: they may use the room, even close it, and must not wait for long. A panic in one passes to
	// the caller, and leaves nothing reserved. Without hooks they cost nothing.
	OnAdmit func(waited time.Duration)

	// OnReject is told of each caller that the room turns away, also because its context has ended, with the error that it
	// gets, which holds a [belfry.Rejection]. What the inner service refuses is not among them. Nil means nobody.
	OnReject func(err error)
}

// Validate says whether [New] takes bound and cfg: bound is at least 1, cfg.Order is one of the three, no duration is
// negative, and CoDel's Target is not above its Interval.
func Validate(bound int, cfg Config) error {
	target, interval := cfg.codel()
	switch {
	case bound < 1:
		return fmt.Errorf("buffer: bound must be at least 1, got %d", bound)
	case cfg.Order > CoDel:
		return fmt.Errorf("buffer: order must be FIFO, LIFO or CoDel, got %v", cfg.Order)
	case cfg.MaxWait < 0:
		return fmt.Errorf("buffer: max wait must be at least 0, got %v", cfg.MaxWait)
	case cfg.Target < 0:
		return fmt.Errorf("buffer: target must be at least 0, got %v", cfg.Target)
	case cfg.Interval < 0:
		return fmt.Errorf("buffer: interval must be at least 0, got %v", cfg.Interval)
	case cfg.Order == CoDel && target > interval:
		return fmt.Errorf("buffer: target must not be above the interval of %v, got %v", interval, target)
	}
	return nil
}

// codel returns Target and Interval, or their defaults.
func (c Config) codel() (target, interval time.Duration) {
	target, interval = c.Target, c.Interval
	if target == 0 {
		target = DefaultTarget
	}
	if interval == 0 {
		interval = DefaultInterval
	}
	return target, interval
}
