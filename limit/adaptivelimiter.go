package limit

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/gradient"
)

// An AdaptiveConfig bounds what an [AdaptiveLimiter] may find. Its zero value is sensible. Hooks are called as those of
// [Config] are.
type AdaptiveConfig struct {
	// Initial is the limit to begin with, within Min and Max. 0 means 4, or the nearest that is. It is better too small than too
	// large: what is learned first is how long calls take without a queue.
	Initial int
	// Min and Max bound the limit, each 1 to 1000000. 0 means 1, and 1000 or Min.
	Min, Max int
	// Window is the shortest time from which the limit is judged, 1ms to 1m. 0 means 100 ms. It is longer where there are
	// few calls, or slow ones.
	Window time.Duration
	// OnAdmit and OnReject are those of [Config].
	OnAdmit  func(waited time.Duration)
	OnReject func(err error)
}

const (
	defaultInitial = 4
	defaultMax     = 1000
	maxAdaptive    = 1_000_000
	defaultWindow  = 100 * time.Millisecond
)

// Validate says which field is out of range, and what the range is.
func (c AdaptiveConfig) Validate() error {
	d := c.withDefaults()
	switch {
	case d.Min < 1 || d.Min > maxAdaptive:
		return fmt.Errorf("limit: min must be 1 to %d, or 0 for 1, got %d", maxAdaptive, c.Min)
	case d.Max < d.Min || d.Max > maxAdaptive:
		return fmt.Errorf("limit: max must be min, which is %d, to %d, or 0 for %d, got %d", d.Min, maxAdaptive, max(defaultMax, d.Min), c.Max)
	case d.Initial < d.Min || d.Initial > d.Max:
		return fmt.Errorf("limit: initial must be min to max, which are %d and %d, or 0 for %d, got %d", d.Min, d.Max, defaultInitial, c.Initial)
	case d.Window < time.Millisecond || d.Window > time.Minute:
		return fmt.Errorf("limit: window must be 1ms to 1m, or 0 for 100ms, got %v", c.Window)
	}
	return nil
}

func (c AdaptiveConfig) withDefaults() AdaptiveConfig {
	if c.Min == 0 {
		c.Min = 1
	}
	if c.Max == 0 {
		c.Max = max(defaultMax, c.Min)
	}
	if c.Initial == 0 {
		c.Initial = max(c.Min, min(c.Max, defaultInitial))
	}
	if c.Window == 0 {
		c.Window = defaultWindow
	}
	return c
}

// An AdaptiveLimiter is a [Limiter] that finds out by itself how many places it has. It may be shared by services of different
// types in front of the same servers. It is made by [NewAdaptiveLimiter] and safe for concurrent use.
type AdaptiveLimiter struct {
	places *Limiter

	mu    sync.Mutex // guards what follows; the Limiter's is taken under it
	found *gradient.Controller
	limit int // of places
}

// NewAdaptiveLimiter returns an AdaptiveLimiter. It panics with the error of cfg.Validate if there is one.
func NewAdaptiveLimiter(cfg AdaptiveConfig) *AdaptiveLimiter {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	cfg = cfg.withDefaults()
	return &AdaptiveLimiter{
		places: NewLimiter(cfg.Initial, Config{OnAdmit: cfg.OnAdmit, OnReject: cfg.OnReject}),
		found:  gradient.New(gradient.Config{Min: cfg.Min, Initial: cfg.Initial, Max: cfg.Max, Window: cfg.Window}),
		limit:  cfg.Initial,
	}
}

// AdaptiveStats is what an AdaptiveLimiter has counted, and learned, at one moment.
type AdaptiveStats struct {
	Stats
	// Base is how long calls take without a queue, as far as it is known; 0 if it is not.
	Base time.Duration
}

// Stats returns what the AdaptiveLimiter has counted and learned.
func (l *AdaptiveLimiter) Stats() AdaptiveStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return AdaptiveStats{l.places.Stats(), l.found.Base()}
}

// learn takes in a call that has ended after latency, and still has its place. Of one that was not answered as it should be,
// latency is a lower bound: it counts if it was slow, and says nothing if it was fast.
func (l *AdaptiveLimiter) learn(latency time.Duration, kind belfry.Kind) {
	now := clock()
	inFlight := l.places.inFlight()
	l.mu.Lock()
	defer l.mu.Unlock()
	if kind != belfry.Success && latency <= l.found.Base() {
		return
	}
	if !l.found.Sample(now, latency, inFlight) {
		return
	}
	if n := l.found.Limit(); n != l.limit {
		l.limit = n
		_ = l.places.Resize(n) // which is above 0
	}
}

var errNoAdaptiveLimiter = errors.New("limit: adaptive limiter must not be nil")
