package belfryhttp

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/outlier"
)

// Balance returns a service over the servers that source names by their base URLs, such as "https://a:8443/api", or by host and
// port, which means http. A request's scheme and host are replaced by those of the endpoint that it goes to, the
// base path is put before its own, and its Host becomes the endpoint's unless PreserveHost is set. So a client that follows
// redirects sends them to an endpoint too, whatever host they name.
//
// Each endpoint has a transport of its own, a clone of Config.Transport, so that removing it can close its idle
// connections. It connects when it is first used, or with Config.Warm before that; an endpoint to which there is no connection fails calls that were not sent, which
// cost it its rank, and may go elsewhere in a retry whatever their method.
//
// At most a tenth of the endpoints is out at a time because their breakers are open, they do worse than others, or they asked for it by a Retry-After, and
// never the last one; b.Eject says otherwise.
//
// Balance reads all of cfg but BodyBuffer. It fails if either Config is not valid.
func Balance(source iter.Seq2[discover.Change, error], b balance.Config, cfg ...Config) (*balance.Balancer[*http.Request, *http.Response], error) {
	c, err := only(cfg)
	if err != nil {
		return nil, err
	}
	var peers *outlier.Detector
	if c.Outlier != nil {
		peers = outlier.NewDetector(*c.Outlier)
	}
	dial := func(ctx context.Context, _, addr string) (belfry.Service[*http.Request, *http.Response], error) {
		return c.endpoint(ctx, addr, peers)
	}
	if source != nil && (c.PerAddress > 1 || c.RotateEvery > 0) {
		source = c.connections().Of(source)
	}
	return balance.New(source, dial, b, Semantics(c))
}

// Endpoint returns the service of the one server at addr, as [Balance] makes it of each: for a dialler of one's own for
// [balance.New], one that must know which endpoint it makes. It reads of cfg what Balance reads. Its Close closes what
// PerEndpoint made, if that can be closed, and then idle connections. It has no peers, so Outlier means nothing to it, and opens no connections before the
// first request: [Dial] does. It fails if addr is no base URL, or cfg not valid.
func Endpoint(addr string, cfg ...Config) (belfry.Service[*http.Request, *http.Response], error) {
	c, err := only(cfg)
	if err != nil {
		return nil, err
	}
	c.Warm, c.RotateEvery = 0, 0
	return c.endpoint(context.Background(), addr, nil)
}

// Dial is [Endpoint] for a dialler that was given ctx: the endpoint finds its part of the guard rail in it, and Warm counts, until ctx ends.
func Dial(ctx context.Context, addr string, cfg ...Config) (belfry.Service[*http.Request, *http.Response], error) {
	c, err := only(cfg)
	if err != nil {
		return nil, err
	}
	return c.endpoint(ctx, addr, nil)
}

// endpoint returns the service of the server at addr, with its part of the guard rail, in ctx, and its peers, if there are any.
func (c *Config) endpoint(ctx context.Context, addr string, peers *outlier.Detector) (belfry.Service[*http.Request, *http.Response], error) {
	base, err := parseBase(addr)
	if err != nil {
		return nil, err
	}
	guard := eject.From(ctx)
	transport := c.newTransport()
	leaf := Transport(transport)
	leaf.rewrite = func(out *http.Request) { rewrite(out, base, c.PreserveHost) }
	if c.Warm > 0 {
		if err := warm(ctx, transport, base, c.Warm); err != nil && c.RotateEvery > 0 {
			transport.CloseIdleConnections()
			return nil, err
		}
	}
	if c.PerEndpoint == nil && c.Breaker == nil && c.ProbePath == "" && peers == nil {
		return leaf, nil
	}
	var svc belfry.Service[*http.Request, *http.Response] = leaf
	if c.PerEndpoint != nil {
		svc = c.PerEndpoint(svc)
	}
	if c.Breaker != nil {
		cfg := *c.Breaker
		cfg.Guard = guard
		svc = breaker.New(svc, cfg, Semantics(*c))
	}
	if peers != nil {
		svc = outlier.New(svc, peers, guard, Semantics(*c))
	}
	if c.ProbePath != "" {
		return newProbed(&closing{svc, leaf}, base, c.ProbePath), nil
	}
	return &closing{svc, leaf}, nil
}

// A closing is a layered endpoint that can be closed.
type closing struct {
	belfry.Service[*http.Request, *http.Response]
	leaf *Leaf
}

// Close closes the layers, if the outermost of them can be closed, and then the endpoint's idle connections.
func (c *closing) Close() error {
	var err error
	if layers, ok := c.Service.(io.Closer); ok && c.Service != belfry.Service[*http.Request, *http.Response](c.leaf) {
		err = layers.Close()
	}
	return errors.Join(err, c.leaf.Close())
}

func (c *Config) newTransport() *http.Transport {
	if c.Transport == nil {
		return NewTransport(c.IdleConns)
	}
	t := c.Transport.Clone()
	if t.MaxIdleConnsPerHost == 0 {
		t.MaxIdleConnsPerHost = c.IdleConns
	}
	return watch(t)
}
