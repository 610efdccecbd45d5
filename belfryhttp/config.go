package belfryhttp

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/outlier"
)

// Config says what HTTP leaves open. One Config may be given to all functions of the package that take one; each
// says which fields it reads. The zero Config is what most clients want.
type Config struct {
	// Idempotent reports whether req may be sent a second time although the first may have been carried out. Nil
	// means [Idempotent]. To opt in for more, call it from a function of your own.
	Idempotent func(req *http.Request) bool

	// RetryStatuses are the statuses after which an idempotent request may be sent again, each from 400 to 599; they
	// count as failures. Nil means 429, 502, 503 and 504; an empty slice means none.
	RetryStatuses []int

	// Failed reports whether res counts against the server that sent it. Nil means [Failed].
	Failed func(res *http.Response) bool

	// Cost says how much work a request is for a server, in units of an ordinary one, such as [BodyCost]; it is asked for each call to a balancer.
	// Nil means that all are equal.
	Cost func(req *http.Request) int

	// BodyBuffer is how many bytes of a request body without GetBody are kept while it is sent, so that it can be
	// sent again. Nothing is read ahead. A longer body is sent once. Zero means that none is kept.
	BodyBuffer int64

	// DrainBytes is how much of a response that nobody will read is read, so that its connection can be used again.
	// Zero means 64 KiB; below zero means nothing: the connection is closed.
	DrainBytes int64

	// DrainTime is how long that reading may take. Zero means 50 ms.
	DrainTime time.Duration

	// PreserveHost keeps the Host that a request came with. Without it the endpoint's own is sent.
	PreserveHost bool

	// Transport is cloned for each endpoint. Nil means one like [http.DefaultTransport].
	Transport *http.Transport

	// PerEndpoint wraps the service of each endpoint, in a limit of its own for example. It is called once for
	// each, concurrently. What it returns is closed with the endpoint if it is an io.Closer. Nil wraps it in nothing.
	PerEndpoint belfry.Layer[*http.Request, *http.Response]

	// Breaker puts a breaker of its own before each endpoint, outside what PerEndpoint made, so that one that keeps failing gets
	// no calls for a while. Nil means none.
	Breaker *breaker.Config

	// ProbePath is where the servers of [Balance] are asked how busy they are, below their base path, if the balancer's metric wants to know,
	// such as [load.Probing]: [DefaultProbePath] if they are behind [ReportLoad]. Empty means that they are not asked.
	ProbePath string

	// Outlier has [Balance] compare the endpoints, and leave those alone for a while that fail more often than their peers, or, if it says so,
	// are slower. Nil means that they are not compared. How many may be out, Breaker counted, says the guard rail in balance.Config.
	Outlier *outlier.Config

	// IdleConns is how many idle connections are kept for each endpoint, unless Transport says so itself: at least the
	// number of concurrent requests, lest connections are opened and closed all the time. Zero means 512.
	IdleConns int

	// Warm is how many connections to an endpoint are opened before it gets requests, up to IdleConns; one is enough for HTTP/2. It gets none before they are
	// there, or could not be opened, or 5 s are over: then it goes without. They are opened once; the Transport's IdleConnTimeout closes them as others. A Transport
	// with a Dial, DialTLS or DialTLSContext of its own, or without a DialContext, opens none. Zero means none.
	Warm int

	// PerAddress is how many endpoints [Balance] makes of each address, each with connections of its own, and RotateEvery how long one stays until
	// it is made anew: for addresses with several servers behind them, see [discover.Connections]. With RotateEvery, Warm is at least 1, and an endpoint to which
	// no connection could be opened is tried again and gets no requests: the one before it serves on. What is meant for an endpoint, such as a limit by
	// PerEndpoint, is for each of them. Zero means 1, and for as long as its address.
	PerAddress  int
	RotateEvery time.Duration
}

const (
	defaultDrainBytes = 64 << 10
	defaultDrainTime  = 50 * time.Millisecond
	defaultIdleConns  = 512
)

var defaultRetryStatuses = []int{
	http.StatusTooManyRequests,
	http.StatusBadGateway,
	http.StatusServiceUnavailable,
	http.StatusGatewayTimeout,
}

// Validate says what is wrong with the Config.
func (c Config) Validate() error {
	for i, status := range c.RetryStatuses {
		if status < 400 || status > 599 {
			return fmt.Errorf("belfryhttp: RetryStatuses[%d] must be from 400 to 599, got %d", i, status)
		}
	}
	switch {
	case c.BodyBuffer < 0:
		return fmt.Errorf("belfryhttp: BodyBuffer must not be below 0, got %d", c.BodyBuffer)
	case c.DrainTime < 0:
		return fmt.Errorf("belfryhttp: DrainTime must not be below 0, got %v", c.DrainTime)
	case c.IdleConns < 0:
		return fmt.Errorf("belfryhttp: IdleConns must not be below 0, got %d", c.IdleConns)
	}
	if most := cmp.Or(c.IdleConns, defaultIdleConns); c.Warm < 0 || c.Warm > most {
		return fmt.Errorf("belfryhttp: Warm must be from 0 to %d, the idle connections that are kept, got %d", most, c.Warm)
	}
	if err := c.connections().Validate(); err != nil {
		return fmt.Errorf("belfryhttp: %w", err)
	}
	if c.ProbePath != "" && c.ProbePath[0] != '/' {
		return fmt.Errorf("belfryhttp: ProbePath must begin with a slash, got %q", c.ProbePath)
	}
	if c.Breaker != nil {
		if err := c.Breaker.Validate(); err != nil {
			return fmt.Errorf("belfryhttp: Breaker: %w", err)
		}
	}
	if c.Outlier != nil {
		if err := c.Outlier.Validate(); err != nil {
			return fmt.Errorf("belfryhttp: Outlier: %w", err)
		}
	}
	return nil
}

func (c Config) connections() discover.Connections {
	return discover.Connections{PerAddress: c.PerAddress, RotateEvery: c.RotateEvery}
}

// only returns the one Config that was given, or the zero one, with its defaults filled in.
func only(cfg []Config) (Config, error) {
	var c Config
	switch len(cfg) {
	case 0:
	case 1:
		c = cfg[0]
	default:
		return c, fmt.Errorf("belfryhttp: at most one Config, got %d", len(cfg))
	}
	if err := c.Validate(); err != nil {
		return c, err
	}
	return c.withDefaults(), nil
}

// mustOnly is only for constructors, which panic.
func mustOnly(cfg []Config) Config {
	c, err := only(cfg)
	if err != nil {
		panic(err)
	}
	return c
}

func (c Config) withDefaults() Config {
	if c.Idempotent == nil {
		c.Idempotent = Idempotent
	}
	if c.Failed == nil {
		c.Failed = Failed
	}
	if c.RetryStatuses == nil {
		c.RetryStatuses = defaultRetryStatuses
	}
	if c.DrainBytes == 0 {
		c.DrainBytes = defaultDrainBytes
	}
	if c.DrainTime == 0 {
		c.DrainTime = defaultDrainTime
	}
	if c.RotateEvery > 0 {
		c.Warm = max(c.Warm, 1)
	}
	if c.IdleConns == 0 {
		c.IdleConns = defaultIdleConns
	}
	return c
}
