package discover

import (
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"time"

	"github.com/belfry-go/belfry/internal/backoff"
)

// Config says how the sources that look again and again do so: [DNS], [SRV] and [File]. The zero value is ready to use.
type Config struct {
	// Scheme is put before addresses that are only host and port: with "http" the address is http://10.0.0.1:8080.
	// Empty means that they stay as they are.
	Scheme string
	// Interval is the longest pause between two looks, at least 1ms. 0 means 30 s, for files 2 s.
	Interval time.Duration
	// Jitter is the share of each pause that chance may take away, in (0, 1], so that programs that were started together do
	// not go on asking together. 0 means 0.2.
	Jitter float64
	// Timeout bounds one look-up. It does not matter to files. 0 means 5 s.
	Timeout time.Duration
	// AllowEmpty lets an answer that names no endpoint take them all. Without it such an answer is an error that
	// matches [ErrEmpty], and the last known set stays as a whole: a name, or a file, without any endpoint is more
	// often broken than right.
	AllowEmpty bool
	// Resolver looks names up. Nil means net.DefaultResolver. It does not matter to files.
	Resolver *net.Resolver
	// Network is which addresses of a host [DNS] looks for: "ip4", "ip6", or "ip" for both, with which a server that has
	// one of each is two endpoints. Empty means those of IPv4, and if there are none those of IPv6.
	Network string
	// Rand is where jitter comes from. It has to be safe for concurrent use if several sources share it. Nil means the
	// runtime's own source.
	Rand rand.Source
}

const (
	defaultInterval     = 30 * time.Second
	defaultFileInterval = 2 * time.Second
	defaultJitter       = 0.2
	defaultTimeout      = 5 * time.Second
	minBackoff          = time.Second
)

var validScheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)?$`)

// Validate says which field is out of range.
func (c Config) Validate() error {
	switch {
	case !validScheme.MatchString(c.Scheme):
		return fmt.Errorf("discover: scheme must be letters, digits, +, - and dots, such as http, got %q", c.Scheme)
	case c.Interval != 0 && c.Interval < time.Millisecond:
		return fmt.Errorf("discover: interval must be at least 1ms, or 0 for the default, got %v", c.Interval)
	case !(c.Jitter >= 0 && c.Jitter <= 1): // so written, it refuses NaN too
		return fmt.Errorf("discover: jitter must be within 0 and 1, got %v", c.Jitter)
	case c.Timeout < 0:
		return fmt.Errorf("discover: timeout must not be negative, got %v", c.Timeout)
	}
	switch c.Network {
	case "", "ip", "ip4", "ip6":
		return nil
	}
	return fmt.Errorf(`discover: network must be "ip4", "ip6", "ip" or empty, got %q`, c.Network)
}

func (c Config) withDefaults(interval time.Duration) Config {
	if c.Interval == 0 {
		c.Interval = interval
	}
	if c.Jitter == 0 {
		c.Jitter = defaultJitter
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	return c
}

// pause is how long to wait after a look that went well.
func (c *Config) pause() time.Duration {
	return backoff.Exponential{Min: c.Interval, Max: c.Interval, Jitter: c.Jitter}.Delay(0, c.chance())
}

// backoff is how long to wait after so many failures in a row, which is never longer than after success.
func (c *Config) backoff(failures int) time.Duration {
	return backoff.Exponential{Min: min(minBackoff, c.Interval), Max: c.Interval, Jitter: c.Jitter}.Delay(failures-1, c.chance())
}

// chance returns a random number in [0, 1).
func (c *Config) chance() float64 {
	if c.Rand == nil {
		return rand.Float64()
	}
	return rand.New(c.Rand).Float64()
}
