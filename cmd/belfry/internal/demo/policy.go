package demo

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/stack"
)

// A policy is a way of telling which of two servers is less busy.
type policy struct {
	name string
	load load.Metric
}

var policies = []policy{
	{"random", load.Constant(nil)},
	{"inflight", load.Pending{}},
	{"peakewma", load.PeakEWMA{}},
}

// The bounds of the stack. They are wide: what a policy does with the load should show, and not what a limit does. Yet there
// are not more places than random choice can need (it has 92 ms × rate in flight on average): after a pause of the
// machine, all that is due comes at once, and each place may open a connection.
const (
	seats     = 10_000
	minPlaces = 256
	timeout   = 10 * time.Second
)

func places(cfg Config) int { return max(minPlaces, cfg.Rate/4) }

func layers(cfg Config) stack.Stack[*http.Request, *http.Response] {
	return belfryhttp.NewStack().LoadShed().Buffer(seats).ConcurrencyLimit(places(cfg)).Timeout(timeout).Retry(retry.Config{})
}

// describe lists the layers.
func describe(cfg Config) string {
	return fmt.Sprintf("%v → balance(random | inflight | peakewma)", layers(cfg))
}

// client returns the stack over the servers, with connections of its own, and what closes them.
func (p policy) client(servers []*server, cfg Config) (http.RoundTripper, func(), error) {
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.url)
	}
	transport := belfryhttp.NewTransport(places(cfg))
	transport.Proxy = nil
	choice := balance.Config{Load: p.load, Rand: rand.NewPCG(cfg.Seed, 1)}
	balancer, err := belfryhttp.Balance(discover.List(urls...), choice, belfryhttp.Config{Transport: transport})
	if err != nil {
		return nil, nil, err
	}
	svc, err := layers(cfg).Build(balancer)
	if err != nil {
		balancer.Close()
		return nil, nil, err
	}
	return belfryhttp.RoundTripper(svc), func() { balancer.Close() }, nil
}
