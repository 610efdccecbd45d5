package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/retry"
)

// An upstream is the stack over the servers.
type upstream struct {
	transport http.RoundTripper
	targets   []string
	layers    string
	close     io.Closer
}

// newUpstream puts the stack together, outermost layer first: who has no seat is shed; a seat is for waiting until there is a place; a
// place is for one call with all its attempts, which one deadline bounds; each attempt goes to the better of two
// servers that have room.
func newUpstream(cfg Config) (*upstream, error) {
	targets, err := ParseTargets(cfg.Targets)
	if err != nil {
		return nil, err
	}
	meaning := belfryhttp.Config{
		BodyBuffer:   cfg.ReplayBytes,
		PreserveHost: true,
		Transport:    newTransport(cfg.EndpointLimit),
	}
	meaning.PerEndpoint = func(server belfry.Service[*http.Request, *http.Response]) belfry.Service[*http.Request, *http.Response] {
		return limit.NewConcurrency(server, limit.NewLimiter(cfg.EndpointLimit), belfryhttp.Semantics(meaning))
	}
	servers, err := belfryhttp.Balance(discover.List(targets...), balance.Config{}, meaning)
	if err != nil {
		return nil, err
	}
	layers := belfryhttp.NewStack(meaning).
		Budget(budget.New(budgetConfig(cfg.RetryRatio))).
		LoadShed().
		Buffer(cfg.Buffer, buffer.Config{MaxWait: cfg.BufferWait}).
		ConcurrencyLimit(cfg.Limit).
		Timeout(cfg.Timeout).
		Retry(retry.Config{MaxAttempts: cfg.Attempts})
	svc, err := layers.Build(servers)
	if err != nil {
		servers.Close()
		return nil, err
	}
	return &upstream{
		transport: belfryhttp.RoundTripper(svc, meaning),
		targets:   targets,
		layers:    fmt.Sprintf("%s → balance(peak ewma, %s) → concurrency limit(%d each)", layers, endpoints(len(targets)), cfg.EndpointLimit),
		close:     servers,
	}, nil
}

// budgetConfig turns a ratio into a budget: 0 means no extra attempts at all, not the default.
func budgetConfig(ratio float64) budget.Config {
	if ratio == 0 {
		return budget.Config{NoRatio: true, NoReserve: true}
	}
	return budget.Config{Ratio: ratio}
}

// newTransport returns what a proxy needs from a transport, which differs from a client: nothing is decompressed on the way, and no other
// proxy is asked.
func newTransport(idle int) *http.Transport {
	t := belfryhttp.NewTransport(idle)
	t.Proxy = nil
	t.DisableCompression = true
	// The next attempt goes to another server, so waiting long for this one is no use.
	t.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	return t
}

const dialTimeout = 5 * time.Second

func endpoints(n int) string {
	if n == 1 {
		return "1 endpoint"
	}
	return fmt.Sprintf("%d endpoints", n)
}

// String lists the layers in the order in which a request meets them.
func (u *upstream) String() string { return u.layers }

// Close closes idle connections, and the others when their calls are over.
func (u *upstream) Close() error { return u.close.Close() }
