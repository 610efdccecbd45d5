package cli

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

type proxyCommand struct {
	Listen string   `default:"${listen}" accept:"listens" placeholder:"ADDR" help:"Address to listen on (default ${listen}). Port 0 takes a free one; the log says which."`
	To     []string `accept:"targets" placeholder:"URL" help:"The servers: ${targets}. Required."`

	EndpointLimit int           `group:"bounds" default:"${endpoint_limit}" accept:"places" help:"Requests at one server at a time."`
	Limit         int           `group:"bounds" default:"${limit}" accept:"places" help:"Requests worked on at a time, over all servers."`
	Buffer        int           `group:"bounds" default:"${buffer}" accept:"places" help:"Requests that may wait for a place; one more is answered 503 at once."`
	BufferWait    time.Duration `group:"bounds" default:"${buffer_wait}" accept:"buffer_waits" help:"How long a request waits for its place (${buffer_waits})."`
	Timeout       time.Duration `group:"bounds" default:"${timeout}" accept:"timeouts" help:"How long until an answer begins, over all attempts (${timeouts}). Bodies and upgraded connections may last."`
	Drain         time.Duration `group:"bounds" default:"${drain}" accept:"drains" help:"How long requests in flight may take to finish after the signal to end (${drains})."`

	Attempts    int      `group:"retries" default:"${attempts}" accept:"attemptss" help:"How often a request is sent at most (${attemptss})."`
	RetryRatio  float64  `group:"retries" default:"${retry_ratio}" accept:"retry_ratios" help:"Extra attempts that one success earns (${retry_ratios}); 10 a second are free if this is above 0."`
	ReplayBytes byteSize `group:"retries" default:"${replay}" accept:"replays" placeholder:"${replay}" help:"How much of a request body is kept so that it can be sent again (${replays})."`
}

func proxyVars() kong.Vars {
	d := proxy.Defaults()
	return kong.Vars{
		"listen": d.Listen, "listens": proxy.AcceptedListen, "targets": proxy.AcceptedTargets, "places": proxy.AcceptedPlaces,
		"endpoint_limit": fmt.Sprint(d.EndpointLimit), "limit": fmt.Sprint(d.Limit), "buffer": fmt.Sprint(d.Buffer),
		"buffer_wait": d.BufferWait.String(), "buffer_waits": proxy.AcceptedBufferWait,
		"timeout": d.Timeout.String(), "timeouts": proxy.AcceptedTimeout,
		"drain": d.Drain.String(), "drains": proxy.AcceptedDrain,
		"attempts": fmt.Sprint(d.Attempts), "attemptss": proxy.AcceptedAttempts,
		"retry_ratio": fmt.Sprint(d.RetryRatio), "retry_ratios": proxy.AcceptedRetryRatio,
		"replay": byteSize(d.ReplayBytes).String(), "replays": proxy.AcceptedReplay,
	}
}

// Help is the long help.
func (proxyCommand) Help() string {
	return `A reverse proxy that sends each request to the less busy of two servers that have room, tries again elsewhere what may be
tried again, and answers 503 with Retry-After at once instead of collapsing. It preserves Host, sets X-Forwarded-For, -Host and
-Proto, and passes WebSocket and other upgrades.

A request that was certainly not carried out is tried again whatever its method; after an error, or a 429, 502, 503 or 504, only GET,
HEAD, OPTIONS, TRACE, PUT, DELETE, and what has an Idempotency-Key.

Answers of its own: 503 no room, 504 too late, 502 the server failed; X-Belfry-Reason says why.

SIGTERM and SIGINT end it when what is in flight has finished, with exit code 0; a second one ends it at once. Other exit
codes: 1 if it cannot listen; 2 for a bad flag.

Examples:

  belfry proxy --to http://a.example:8080,http://b.example:8080
  belfry proxy --listen :80 --to https://a.example --timeout 5s
  belfry proxy --to http://localhost:3000 --endpoint-limit 20 --buffer 100`
}

func (c proxyCommand) config() proxy.Config {
	return proxy.Config{
		Listen: c.Listen, Targets: c.To,
		Buffer: c.Buffer, BufferWait: c.BufferWait, Limit: c.Limit, EndpointLimit: c.EndpointLimit, Timeout: c.Timeout,
		Attempts: c.Attempts, RetryRatio: c.RetryRatio, ReplayBytes: int64(c.ReplayBytes),
		Drain: c.Drain,
	}
}

// Validate is asked by kong.
func (c proxyCommand) Validate() error { return c.config().Validate() }

// Run serves until a signal.
func (c proxyCommand) Run(p Process, code *int) error {
	*code = proxy.Run(c.config(), slog.New(slog.NewTextHandler(p.Stderr, nil)))
	return nil
}

// byteSize is a number of bytes, as a flag: 65536, 64KiB or 64kB.
type byteSize int64

// UnmarshalText reads one.
func (b *byteSize) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || int64(n) < 0 {
		return fmt.Errorf("expected a number of bytes, such as 65536 or 64KiB, but got %q", text)
	}
	*b = byteSize(n)
	return nil
}

// String writes one as it is read.
func (b byteSize) String() string {
	if b != 0 && b%1024 == 0 {
		return fmt.Sprintf("%dKiB", int64(b)/1024)
	}
	return fmt.Sprint(int64(b))
}
