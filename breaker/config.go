package breaker

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/backoff"
)

// Config says when a breaker opens, and for how long. The zero value is ready to use: it opens after five failures in a row.
type Config struct {
	// Consecutive is how many failures in a row open the breaker. 0 means [DefaultConsecutive], or, if Ratio is set, that nobody counts them.
	Consecutive int
	// Ratio is the share of failures within Window that opens the breaker, at most 1. It is looked at when a call fails. 0 means
	// that nobody counts them.
	Ratio float64
	// Window is how far back Ratio looks, at least 10ms. It moves in steps of a tenth. 0 means 10 s.
	Window time.Duration
	// MinCalls is how many calls there have to be within Window before Ratio means something. 0 means 20.
	MinCalls int

	// MinBackoff is the pause before the first probe. It doubles with each probe that fails, and chance shortens it. 0
	// means 1 s, else it is at least 1 ms.
	MinBackoff time.Duration
	// MaxBackoff is the longest pause, unless the service asks for a longer one. 0 means 1 min, or MinBackoff if that is more.
	MaxBackoff time.Duration
	// Jitter is the share of each pause that chance may take away, in (0, 1]. 0 means 0.5.
	Jitter float64
	// MaxRetryAfter is how long a pause may become because a response asks for it. 0 means 5 min.
	MaxRetryAfter time.Duration
	// ProbeTimeout is how long a probe is waited for, from when its caller is let through. After that another may go,
	// and what becomes of the first does not matter any more. 0 means 1 min, else it is at least 1 ms.
	ProbeTimeout time.Duration

	// Wait makes Acquire wait while the breaker is open, as long as its context allows, instead of refusing.
	Wait bool
	// OnChange is told of each change, one at a time and in order, in a goroutine of its own, without a lock: it may use
	// the service. A panic in it is lost. Nil means nobody.
	OnChange func(Change)
	// Guard is the endpoint in the guard rail of its fleet: while too many are out already, the breaker stays closed, and asks again with
	// each failure that would open it. It belongs to one endpoint, and so does a Config that has one. Nil means that nobody is asked.
	Guard *eject.Endpoint
	// Rand is where jitter comes from. It has to be safe for concurrent use if several services share it. Nil means the
	// runtime's own source.
	Rand rand.Source
}

// DefaultConsecutive is what Config.Consecutive means by 0, unless there is a ratio.
const DefaultConsecutive = 5

const (
	defaultWindow        = 10 * time.Second
	defaultMinCalls      = 20
	defaultMinBackoff    = time.Second
	defaultMaxBackoff    = time.Minute
	defaultJitter        = 0.5
	defaultMaxRetryAfter = 5 * time.Minute
	defaultProbeTimeout  = time.Minute

	minWindow = 10 * time.Millisecond
)

// Validate says which field is out of range.
func (c Config) Validate() error {
	switch {
	case c.Consecutive < 0:
		return fmt.Errorf("breaker: consecutive must be at least 1, or 0 for the default, got %d", c.Consecutive)
	case !(c.Ratio >= 0 && c.Ratio <= 1): // so written, it refuses NaN too
		return fmt.Errorf("breaker: ratio must be within 0 and 1, got %v", c.Ratio)
	case c.Window != 0 && c.Window < minWindow:
		return fmt.Errorf("breaker: window must be at least %v, or 0 for the default, got %v", minWindow, c.Window)
	case c.MinCalls < 0:
		return fmt.Errorf("breaker: min calls must be at least 1, or 0 for the default, got %d", c.MinCalls)
	case c.MaxRetryAfter < 0:
		return fmt.Errorf("breaker: max retry-after must not be negative, got %v", c.MaxRetryAfter)
	case c.ProbeTimeout != 0 && c.ProbeTimeout < time.Millisecond:
		return fmt.Errorf("breaker: probe timeout must be at least 1ms, or 0 for the default, got %v", c.ProbeTimeout)
	}
	d := c.withDefaults()
	if err := d.backoff().Validate(); err != nil {
		return fmt.Errorf("breaker: back-off: %w", err)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Consecutive == 0 && c.Ratio == 0 {
		c.Consecutive = DefaultConsecutive
	}
	if c.Window == 0 {
		c.Window = defaultWindow
	}
	if c.MinCalls == 0 {
		c.MinCalls = defaultMinCalls
	}
	if c.MinBackoff == 0 {
		c.MinBackoff = defaultMinBackoff
	}
	if c.MaxBackoff == 0 {
		c.MaxBackoff = max(defaultMaxBackoff, c.MinBackoff)
	}
	if c.Jitter == 0 {
		c.Jitter = defaultJitter
	}
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = defaultMaxRetryAfter
	}
	if c.ProbeTimeout == 0 {
		c.ProbeTimeout = defaultProbeTimeout
	}
	return c
}

func (c *Config) backoff() backoff.Exponential {
	return backoff.Exponential{Min: c.MinBackoff, Max: c.MaxBackoff, Jitter: c.Jitter}
}
