package cli

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"github.com/belfry-go/belfry/cmd/belfry/internal/admin"
	"github.com/belfry-go/belfry/cmd/belfry/internal/config"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

type proxyCommand struct {
	Config string   `placeholder:"FILE" help:"Read everything from this YAML file, and no other flag. SIGHUP reads it again."`
	Listen string   `default:"${listen}" accept:"listens" placeholder:"ADDR" help:"Address to listen on (default ${listen}). Port 0 takes a free one; the log says which."`
	To     []string `accept:"targets" placeholder:"URL" help:"The servers, separated by commas: ${targets}. Required, unless there is a file."`
	Admin  string   `default:"${admin}" accept:"admins" placeholder:"ADDR" help:"Address of the page, the metrics and /readyz, for those who may see them (default ${admin}); off for none."`

	AccessLog bool   `help:"Log a line for each request."`
	LogLevel  string `default:"${log_level}" accept:"log_levels" placeholder:"LEVEL" help:"How much is logged: ${log_levels} (default ${log_level})."`

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
		"listen": d.Listen, "listens": proxy.AcceptedListen, "admin": d.Admin, "admins": proxy.AcceptedAdmin, "targets": proxy.AcceptedTargets, "places": proxy.AcceptedPlaces,
		"endpoint_limit": fmt.Sprint(d.EndpointLimit), "limit": fmt.Sprint(d.Limit), "buffer": fmt.Sprint(d.Buffer),
		"buffer_wait": d.BufferWait.String(), "buffer_waits": proxy.AcceptedBufferWait,
		"timeout": d.Timeout.String(), "timeouts": proxy.AcceptedTimeout,
		"log_level": d.LogLevel, "log_levels": proxy.AcceptedLogLevel,
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

At the admin address: a page that shows what goes on, /api/state, /metrics for Prometheus, /healthz, and /readyz, which is 503 from
the signal to end on. By default only this machine can see it; two proxies on one machine need an address each.

SIGTERM and SIGINT end it when what is in flight has finished, with exit code 0; a second one ends it at once. SIGHUP reads the
file again, if there is one: a good one takes effect without losing a request, a bad one has none. Without a file it ends like
SIGTERM. Other exit codes: 1 if it cannot listen; 2 for a bad flag or file.

What has no flag is in the file: TLS, health checks, trusted forwarders, and more. belfry.example.yaml explains all of it.

Examples:

  belfry proxy --to http://a.example:8080,http://b.example:8080
  belfry proxy --listen :80 --to https://a.example --timeout 5s
  belfry proxy --to http://localhost:3000 --endpoint-limit 20 --buffer 100
  belfry proxy --to dns:///backend.internal:8080
  belfry proxy --config belfry.yaml`
}

// config returns what the flags say, and for the rest the defaults.
func (c proxyCommand) config() proxy.Config {
	cfg := proxy.Defaults()
	cfg.Listen, cfg.Targets, cfg.AccessLog = c.Listen, c.To, c.AccessLog
	cfg.LogLevel = c.LogLevel
	if cfg.Admin = c.Admin; strings.EqualFold(c.Admin, "off") {
		cfg.Admin = ""
	}
	cfg.Buffer, cfg.BufferWait, cfg.Limit, cfg.EndpointLimit, cfg.Timeout = c.Buffer, c.BufferWait, c.Limit, c.EndpointLimit, c.Timeout
	cfg.Attempts, cfg.RetryRatio, cfg.ReplayBytes = c.Attempts, c.RetryRatio, int64(c.ReplayBytes)
	cfg.Drain = c.Drain
	return cfg
}

// AfterApply is asked by kong, which here knows what was given: a file says everything, since of a flag beside it nobody
// could tell what it means after a reload.
func (c proxyCommand) AfterApply(ctx *kong.Context) error {
	if c.Config == "" {
		return c.config().Validate()
	}
	for _, p := range ctx.Path {
		if p.Flag != nil && p.Flag.Name != "config" {
			return fmt.Errorf("--%s cannot be used with --config, which says everything; put it into %s", p.Flag.Name, c.Config)
		}
	}
	return nil
}

// Run serves until a signal.
func (c proxyCommand) Run(p Process, code *int) error {
	cfg, opts := c.config(), proxy.Options{Level: new(slog.LevelVar)}
	if c.Config != "" {
		load := func() (proxy.Config, error) { return config.Load(c.Config) }
		var err error
		if cfg, err = load(); err != nil {
			return refusedFile(p, code, err)
		}
		opts.File, opts.Reload = c.Config, load
	}
	defer admin.Attach(&opts)()
	*code = proxy.Run(cfg, opts, slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: opts.Level})))
	return nil
}

// refusedFile prints what is wrong with a file.
func refusedFile(p Process, code *int, err error) error {
	*code = ExitUsage
	_, err = fmt.Fprintln(p.Stderr, err)
	return err
}

type checkCommand struct {
	File string `arg:"" help:"A YAML file for belfry proxy --config."`
}

// Help is the long help.
func (checkCommand) Help() string {
	return `Says what is wrong with the file, a line for each mistake: file, line, key, and what is accepted. Files that it names
(certificates, keys) are read too. Nothing else is tried: no name is looked up, no address is listened on.

Exit codes: 0 if belfry proxy can run it; 2 if not.

Example:

  belfry check belfry.yaml && kill -HUP "$(pidof belfry)"`
}

// Run checks the file.
func (c checkCommand) Run(p Process, code *int) error {
	if _, err := config.Load(c.File); err != nil {
		return refusedFile(p, code, err)
	}
	_, err := fmt.Fprintf(p.Stdout, "%s is fine\n", c.File)
	return err
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
