package reconnect

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/backoff"
)

// Config says how a [Service] is made and made again. The zero value is ready to use.
type Config struct {
	// MinBackoff is the first pause after a service could not be made. Pauses double, and chance shortens each. 0 means
	// 100 ms, else it is at least 1 ms.
	MinBackoff time.Duration
	// MaxBackoff is the longest pause. 0 means 10 s, or MinBackoff if that is more.
	MaxBackoff time.Duration
	// Timeout bounds one attempt: its context ends then. 0 means 20 s.
	Timeout time.Duration
	// Wait keeps callers waiting through failed attempts and pauses, as long as their contexts allow. Without it they are
	// refused with the error of the attempt they waited for, and during a pause at once.
	Wait bool
	// Remake says whether the error of a call means that the service is broken, and has to be made again. It is called in the
	// caller's goroutine, several times at once, for errors of calls that were sent; [belfry.ErrClosed] needs no asking.
	// [Broken] is one for connections. Nil means that no other error does.
	Remake func(err error) bool
	// OnChange is told when the state changes; one call at a time, in a goroutine of its own, without a lock: it may use the
	// service, and close it. The next attempt waits for it, and changes that overtake it are told as one. Close is not
	// told. A panic in it is lost. Nil means nobody.
	OnChange func(Stats)
	// Rand is where jitter comes from. It has to be safe for concurrent use. Nil means the runtime's own source.
	Rand rand.Source
}

const (
	defaultMinBackoff = 100 * time.Millisecond
	defaultMaxBackoff = 10 * time.Second
	defaultTimeout    = 20 * time.Second
)

// Validate says which field is out of range.
func (c Config) Validate() error {
	if c.Timeout < 0 {
		return fmt.Errorf("reconnect: timeout must not be negative, got %v", c.Timeout)
	}
	if err := c.withDefaults().backoff().Validate(); err != nil {
		return fmt.Errorf("reconnect: back-off: %w", err)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.MinBackoff == 0 {
		c.MinBackoff = defaultMinBackoff
	}
	if c.MaxBackoff == 0 {
		c.MaxBackoff = max(defaultMaxBackoff, c.MinBackoff)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	return c
}

func (c Config) backoff() backoff.Exponential {
	return backoff.Exponential{Min: c.MinBackoff, Max: c.MaxBackoff}
}

// chance returns a random number in [0, 1).
func (c *Config) chance() float64 {
	if c.Rand == nil {
		return rand.Float64()
	}
	return rand.New(c.Rand).Float64()
}

// lost reports whether a call that returned err has lost its service.
func (c *Config) lost(err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, belfry.ErrClosed):
		return true
	case errors.Is(err, belfry.ErrRejected): // nothing was sent
		return false
	}
	return c.Remake != nil && c.Remake(err)
}

// Broken reports whether err is one of a connection that is gone, for Config.Remake: closed on either side, reset, or
// aborted. A time-out is not: it does not tell a dead connection from a slow answer.
func Broken(err error) bool {
	for _, gone := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed,
		syscall.EPIPE, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ECONNREFUSED,
	} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}
