package outlier

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/internal/backoff"
)

// Config says who is an outlier, and for how long it is ejected. The zero value is ready to use: it looks at failures alone.
type Config struct {
	// Interval is how often endpoints are compared, by what they did since the last time, at least 10ms. 0 means 10 s.
	Interval time.Duration
	// MinEndpoints is how many endpoints with enough calls it takes to compare any, at least 3. 0 means 3.
	MinEndpoints int
	// MinCalls is how many calls an endpoint must have had in the interval. 0 means 30.
	MinCalls int
	// Deviations is how many robust deviations away from the median is far. 0 means 3.
	Deviations float64
	// Gap is by how much the share of successes has to be below the median at least, at most 1. 0 means 0.1.
	Gap float64
	// Latency is how many times the median latency a latency has to be at least, at least 1. 0 means that latencies are not compared.
	Latency float64
	// IgnoreFailures leaves it at latencies.
	IgnoreFailures bool

	// MinEjection is how long an endpoint is out the first time, at least 1ms; each in a row is twice as long. 0 means 30 s.
	MinEjection time.Duration
	// MaxEjection is how long at most. 0 means 5 min, or MinEjection if that is more.
	MaxEjection time.Duration
	// Jitter is the share of each time that chance may take away, in (0, 1]. 0 means 0.2.
	Jitter float64
	// OnEject is told of each endpoint that is ejected or spared by the guard rail: in the goroutine of the call that ended the interval, without a
	// lock. It must not wait for long. A panic in it is lost. Nil means nobody.
	OnEject func(Verdict)
	// Rand is where jitter comes from; the Detector uses it under a lock of its own. Nil means the runtime's own source.
	Rand rand.Source
}

const (
	defaultInterval     = 10 * time.Second
	defaultMinEndpoints = 3
	defaultMinCalls     = 30
	defaultDeviations   = 3
	defaultGap          = 0.1
	defaultMinEjection  = 30 * time.Second
	defaultMaxEjection  = 5 * time.Minute
	defaultJitter       = 0.2

	minInterval = 10 * time.Millisecond
)

// Validate says which field is out of range.
func (c Config) Validate() error {
	switch {
	case c.Interval != 0 && c.Interval < minInterval:
		return fmt.Errorf("outlier: interval must be at least %v, or 0 for the default, got %v", minInterval, c.Interval)
	case c.MinEndpoints != 0 && c.MinEndpoints < defaultMinEndpoints:
		return fmt.Errorf("outlier: min endpoints must be at least %d, or 0 for the default, got %d", defaultMinEndpoints, c.MinEndpoints)
	case c.MinCalls < 0:
		return fmt.Errorf("outlier: min calls must be at least 1, or 0 for the default, got %d", c.MinCalls)
	case !(c.Deviations >= 0): // so written, it refuses NaN too
		return fmt.Errorf("outlier: deviations must be above 0, or 0 for the default, got %v", c.Deviations)
	case !(c.Gap >= 0 && c.Gap <= 1):
		return fmt.Errorf("outlier: gap must be within 0 and 1, got %v", c.Gap)
	case c.Latency != 0 && !(c.Latency >= 1):
		return fmt.Errorf("outlier: latency must be at least 1, or 0 to leave it out, got %v", c.Latency)
	case c.IgnoreFailures && c.Latency == 0:
		return fmt.Errorf("outlier: with ignore failures, latency must be at least 1, got %v", c.Latency)
	}
	d := c.withDefaults()
	if err := d.times().Validate(); err != nil {
		return fmt.Errorf("outlier: ejection: %w", err)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Interval == 0 {
		c.Interval = defaultInterval
	}
	if c.MinEndpoints == 0 {
		c.MinEndpoints = defaultMinEndpoints
	}
	if c.MinCalls == 0 {
		c.MinCalls = defaultMinCalls
	}
	if c.Deviations == 0 {
		c.Deviations = defaultDeviations
	}
	if c.Gap == 0 {
		c.Gap = defaultGap
	}
	if c.MinEjection == 0 {
		c.MinEjection = defaultMinEjection
	}
	if c.MaxEjection == 0 {
		c.MaxEjection = max(defaultMaxEjection, c.MinEjection)
	}
	if c.Jitter == 0 {
		c.Jitter = defaultJitter
	}
	return c
}

func (c *Config) times() backoff.Exponential {
	return backoff.Exponential{Min: c.MinEjection, Max: c.MaxEjection, Jitter: c.Jitter}
}
