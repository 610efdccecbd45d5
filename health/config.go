package health

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/backoff"
)

// Config says how often an endpoint is probed, and what the results mean. The zero value is ready to use.
type Config struct {
	// Interval is the longest pause between two probes, at least 1ms. 0 means 10 s.
	Interval time.Duration
	// FastInterval is that pause while there is doubt, at least 1ms and at most Interval. 0 means a fifth of Interval.
	FastInterval time.Duration
	// Jitter is the share of each pause that chance may take away, in (0, 1]. 0 means 0.2.
	Jitter float64
	// Timeout bounds one probe. 0 means 2 s.
	Timeout time.Duration
	// Unhealthy is how many failures in a row make a healthy endpoint unhealthy. 0 means 3.
	Unhealthy int
	// Healthy is how many successes in a row make an unhealthy endpoint healthy. 0 means 2.
	Healthy int
	// StartUnhealthy refuses calls until a first probe has succeeded; one is enough for that. Without it calls are let through
	// from the start.
	StartUnhealthy bool
	// OnChange is told when the endpoint becomes healthy or unhealthy, with what is known then but Refused; one call at a
	// time, in a goroutine of its own, without a lock: it may use the service, and close it. The next probe waits for it. A
	// panic in it is lost. Nil means nobody.
	OnChange func(Stats)
	// Guard is the endpoint in the guard rail of its fleet: while too many are out already, an unhealthy endpoint is left in, and
	// each probe that fails asks again. It belongs to one endpoint, and so does a Config that has one. Nil means that nobody is asked.
	Guard *eject.Endpoint
	// Rand is where jitter comes from. It has to be safe for concurrent use if several services share it. Nil means the
	// runtime's own source.
	Rand rand.Source
}

const (
	defaultInterval  = 10 * time.Second
	defaultFast      = 5 // times as often
	defaultJitter    = 0.2
	defaultTimeout   = 2 * time.Second
	defaultUnhealthy = 3
	defaultHealthy   = 2
)

// Validate says which field is out of range, or that there is no probe.
func Validate(probe func(ctx context.Context) error, cfg Config) error {
	if probe == nil {
		return errNoProbe
	}
	return cfg.Validate()
}

var errNoProbe = errors.New("health: probe must not be nil")

// Validate says which field is out of range.
func (c Config) Validate() error {
	interval := c.withDefaults().Interval
	switch {
	case c.Interval != 0 && c.Interval < time.Millisecond:
		return fmt.Errorf("health: interval must be at least 1ms, or 0 for the default, got %v", c.Interval)
	case c.FastInterval != 0 && (c.FastInterval < time.Millisecond || c.FastInterval > interval):
		return fmt.Errorf("health: fast interval must be 1ms to the interval (%v), or 0 for the default, got %v", interval, c.FastInterval)
	case !(c.Jitter >= 0 && c.Jitter <= 1): // so written, it refuses NaN too
		return fmt.Errorf("health: jitter must be within 0 and 1, got %v", c.Jitter)
	case c.Timeout < 0:
		return fmt.Errorf("health: timeout must not be negative, got %v", c.Timeout)
	case c.Unhealthy < 0:
		return fmt.Errorf("health: unhealthy must be at least 1, or 0 for the default, got %d", c.Unhealthy)
	case c.Healthy < 0:
		return fmt.Errorf("health: healthy must be at least 1, or 0 for the default, got %d", c.Healthy)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Interval == 0 {
		c.Interval = defaultInterval
	}
	if c.FastInterval == 0 {
		c.FastInterval = max(c.Interval/defaultFast, min(c.Interval, time.Millisecond))
	}
	if c.Jitter == 0 {
		c.Jitter = defaultJitter
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Unhealthy == 0 {
		c.Unhealthy = defaultUnhealthy
	}
	if c.Healthy == 0 {
		c.Healthy = defaultHealthy
	}
	return c
}

// first is how long to wait before the first probe.
func (c *Config) first() time.Duration {
	return time.Duration(float64(c.FastInterval) * c.chance())
}

// pause is how long to wait before the next probe.
func (c *Config) pause(doubt bool) time.Duration {
	longest := c.Interval
	if doubt {
		longest = c.FastInterval
	}
	return backoff.Exponential{Min: longest, Max: longest, Jitter: c.Jitter}.Delay(0, c.chance())
}

// chance returns a random number in [0, 1).
func (c *Config) chance() float64 {
	if c.Rand == nil {
		return rand.Float64()
	}
	return rand.New(c.Rand).Float64()
}
