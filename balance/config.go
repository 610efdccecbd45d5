package balance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/backoff"
	"github.com/belfry-go/belfry/load"
)

// Config says how a [Balancer] works. The zero value is ready to use.
type Config struct {
	// Load is how the cost of endpoints is measured. Nil means load.Expected{}.
	Load load.Metric
	// MaxWait bounds how long callers wait while no endpoint is known but one may still be discovered.
	// 0 means 5 s.
	MaxWait time.Duration
	// AllowEmpty lets the source take the last endpoint. Without it, that one stays until another is there: a
	// source that suddenly knows none is more often broken than right.
	AllowEmpty bool
	// MinBackoff is the first pause after an endpoint could not be dialled, or its Acquire failed. Pauses double,
	// and chance shortens each. 0 means 100 ms, else it is at least 1 ms.
	MinBackoff time.Duration
	// MaxBackoff is the longest pause, unless the endpoint asks for a longer one. 0 means 10 s, or MinBackoff if that is more.
	MaxBackoff time.Duration
	// Eject is the guard rail: how many endpoints may be out at a time because a breaker, a health check or outlier detection says so.
	// The dialler finds each endpoint's part of it in its context, by [eject.From], for the layers that it makes. The zero value means a tenth, one
	// at least, and never the last one.
	Eject eject.Config
	// Zone is where the callers are, in the words of the source. Endpoints of that zone are preferred to others of the same priority, as long
	// as they have room and a call there costs no more than ZoneFactor times what it costs elsewhere. Empty means that all zones are alike.
	Zone string
	// ZoneFactor is how many times what a call takes in another zone it may take in Zone. It matters to metrics of latency only. Where more than two in seven
	// endpoints of Zone are slower than that, the others get 1.4 times their share of the calls, and the rest leaves. One call in 64 goes to another
	// zone in any case: else nobody would know. 0 means 2, else it is at least 1.
	ZoneFactor float64
	// MaxRetryAfter is how long an endpoint is left alone at most because a failed response has asked for it: as an HTTP server does that answers
	// 429 or 503 with Retry-After. The guard rail may say that it has to stay in. 0 means 30 s; below 0 means that it is not asked about.
	MaxRetryAfter time.Duration
	// Remember is for how long an endpoint that was removed is remembered by its key and address: if it comes back in that time, as when a DNS answer
	// comes and goes, its cost is what has been measured of it, for metrics whose endpoints are [load.Rejoiner], which all are that measure. The latest
	// 1024 are remembered. What breakers, health checks and the guard rail know is not. 0 means 1 min; below 0 means that nothing is remembered.
	Remember time.Duration
	// ProbeBudget pays for probes, if the metric sends any: one withdrawal each. What is refused is not sent. Nil means that the metric alone says
	// how many. Nothing is paid in here.
	ProbeBudget *budget.Budget
	// ProbeTimeout is how long a probe may take. 0 means 1 s.
	ProbeTimeout time.Duration
	// MaxProbes is how many probes may be in flight. 0 means 64.
	MaxProbes int
	// ByKey sends calls that have the same key ([WithKey]) to the same endpoint, whatever its zone. Each such call looks at all endpoints. Calls without a
	// key are balanced as ever.
	ByKey bool
	// Decisions is how many of the latest choices are kept for [Balancer.Decisions], some 350 bytes each. A call then takes a little longer, and allocates
	// nothing more. 0 means none, else it is at most 1000000.
	Decisions int
	// Rand draws the endpoints; it need not be safe for concurrent use. Nil means the runtime's own source.
	Rand rand.Source
	// OnEvent is told what happens to endpoints and their source, from several goroutines at once, and must
	// not wait for long. A panic in it is lost. Nil means nobody.
	OnEvent func(Event)
}

const (
	defaultMaxWait    = 5 * time.Second
	defaultMinBackoff = 100 * time.Millisecond
	defaultMaxBackoff = 10 * time.Second

	defaultMaxRetryAfter = 30 * time.Second
	defaultZoneFactor    = 2
	defaultRemember      = time.Minute

	maxDecisions = 1_000_000
)

// Validate says which field is out of range.
func (c Config) Validate() error {
	if c.MaxWait < 0 {
		return fmt.Errorf("balance: max wait must not be negative, got %v", c.MaxWait)
	}
	if err := c.withDefaults().backoff().Validate(); err != nil {
		return fmt.Errorf("balance: back-off: %w", err)
	}
	if c.ZoneFactor != 0 && !(c.ZoneFactor >= 1 && c.ZoneFactor <= math.MaxFloat64) { // so written, it refuses NaN too
		return fmt.Errorf("balance: zone factor must be at least 1, got %v", c.ZoneFactor)
	}
	if err := c.Eject.Validate(); err != nil {
		return fmt.Errorf("balance: %w", err)
	}
	if c.ProbeTimeout < 0 {
		return fmt.Errorf("balance: probe timeout must not be negative, got %v", c.ProbeTimeout)
	}
	if c.MaxProbes < 0 {
		return fmt.Errorf("balance: max probes must not be negative, got %d", c.MaxProbes)
	}
	if c.Decisions < 0 || c.Decisions > maxDecisions {
		return fmt.Errorf("balance: decisions must be 0 to %d, got %d", maxDecisions, c.Decisions)
	}
	if c.Load != nil {
		return c.Load.Validate()
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Load == nil {
		c.Load = load.Expected{}
	}
	if c.MaxWait == 0 {
		c.MaxWait = defaultMaxWait
	}
	if c.ZoneFactor == 0 {
		c.ZoneFactor = defaultZoneFactor
	}
	if c.MinBackoff == 0 {
		c.MinBackoff = defaultMinBackoff
	}
	if c.MaxBackoff == 0 {
		c.MaxBackoff = max(defaultMaxBackoff, c.MinBackoff)
	}
	if c.ProbeTimeout == 0 {
		c.ProbeTimeout = defaultProbeTimeout
	}
	if c.MaxProbes == 0 {
		c.MaxProbes = defaultMaxProbes
	}
	if c.Remember == 0 {
		c.Remember = defaultRemember
	}
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = defaultMaxRetryAfter
	}
	return c
}

func (c Config) backoff() backoff.Exponential {
	return backoff.Exponential{Min: c.MinBackoff, Max: c.MaxBackoff}
}

// runtimeSource is the runtime's own source of random numbers.
type runtimeSource struct{}

func (runtimeSource) Uint64() uint64 { return rand.Uint64() }

// concurrent returns source made safe for concurrent use.
func concurrent(source rand.Source) rand.Source {
	if source == nil {
		return runtimeSource{}
	}
	return &lockedSource{source: source}
}

// A lockedSource hands its numbers out one by one.
type lockedSource struct {
	mu     sync.Mutex
	source rand.Source
}

func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Uint64()
}
