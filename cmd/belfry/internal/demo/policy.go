package demo

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/load"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/stack"
)

// A policy is a way of telling which of two servers is less busy.
type policy struct {
	name string
	load load.Metric
}

// policies are compared in this order. The last is what package balance does if it is told nothing.
var policies = []policy{
	{"random", load.Constant(nil)},
	{"inflight", load.Pending{}},
	{"peakewma", load.PeakEWMA{}},
	{"expected", load.Expected{}},
}

func policyNames(separator string) string {
	var names []string
	for _, p := range policies {
		names = append(names, p.name)
	}
	return strings.Join(names, separator)
}

// The bounds of the stack. They are wide: what a policy does with the load should show, and not what a limit does. Yet there
// are not many more places than random choice can need (the spread has 92 ms × rate in flight on average, a server that
// hangs for half of the time has rate / 22 for each second more): after a pause of the machine, all that is due comes at once, and
// each place may open a connection.
const (
	seats     = 10_000
	minPlaces = 256
	patience  = 10 * time.Second
)

func places(p plan) int { return max(minPlaces, p.Rate/2) + int(float64(p.Rate)*p.Run.Seconds()/20) }

func layers(p plan) stack.Stack[*http.Request, *http.Response] {
	// Nothing is tried again in vain: the failures of a scenario are to be seen, and have a status that is not worth it.
	return belfryhttp.NewStack().LoadShed().Buffer(seats).ConcurrencyLimit(places(p)).Timeout(p.Run + patience).Retry(retry.Config{})
}

// describe lists the layers.
func describe(p plan) string {
	return fmt.Sprintf("%v → balance(%s)", layers(p), policyNames(" | "))
}

// client returns the stack over the servers, with connections of its own, and what closes them.
func (p policy) client(servers []*server, of plan, t *trial) (http.RoundTripper, func(), error) {
	transport := belfryhttp.NewTransport(places(of))
	transport.Proxy = nil
	choice := balance.Config{Load: p.load, Rand: rand.NewPCG(of.seed, 1)}
	balancer, err := belfryhttp.Balance(t.source(servers), choice, belfryhttp.Config{Transport: transport})
	if err != nil {
		return nil, nil, err
	}
	svc, err := layers(of).Build(balancer)
	if err != nil {
		balancer.Close()
		return nil, nil, err
	}
	return belfryhttp.RoundTripper(svc), func() { balancer.Close() }, nil
}
