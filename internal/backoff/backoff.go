// Package backoff holds the arithmetic of pauses that grow from one attempt to the next. It knows no clock and no random
// source: callers bring both.
//
// The pauses are exponential with jitter over the whole duration, "full jitter" unless less is asked for: of the ways to
// spread clients that failed together it needs the fewest calls until all are served (Marc Brooker, "Exponential Backoff
// And Jitter", AWS Architecture Blog, 2015).
package backoff

import (
	"fmt"
	"time"
)

// An Exponential doubles from Min to Max.
type Exponential struct {
	// Min is the first base, at least a millisecond: less would not be a pause.
	Min time.Duration
	// Max is the longest base, at least Min.
	Max time.Duration
	// Jitter is the share of a base that chance may take away, in (0, 1]. 0 means 1: pauses always have jitter.
	Jitter float64
}

// Validate says which field is out of range, and what the range is.
func (e Exponential) Validate() error {
	switch {
	case e.Min < time.Millisecond:
		return fmt.Errorf("min must be at least 1ms, got %v", e.Min)
	case e.Max < e.Min:
		return fmt.Errorf("max must be at least min (%v), got %v", e.Min, e.Max)
	case !(e.Jitter >= 0 && e.Jitter <= 1): // so written, it refuses NaN too
		return fmt.Errorf("jitter must be within 0 and 1, got %v", e.Jitter)
	}
	return nil
}

// Base returns min(Max, Min·2^i), the longest that pause i can be. The first pause has i = 0.
func (e Exponential) Base(i int) time.Duration {
	i = max(i, 0)
	if i >= 63 || e.Min > e.Max>>i { // Min<<i would overtake Max, or overflow
		return e.Max
	}
	return e.Min << i
}

// Delay returns pause i, Base(i)·(1 − Jitter·u), for a random u in [0, 1). It is never 0.
func (e Exponential) Delay(i int, u float64) time.Duration {
	jitter := e.Jitter
	if jitter == 0 {
		jitter = 1
	}
	base := e.Base(i)
	return max(1, base-time.Duration(float64(base)*jitter*u)) // subtracted, so that rounding cannot lift it above base
}
