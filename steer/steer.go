// Package steer sends each request to one of several services. It is late: a [Service] is always ready, which says nothing
// about its routes; Call picks the route first and then reserves it, waiting as long as its context allows.
//
// So a call waits for the one service that it goes to. A route that is not ready, or has failed for good, is no
// concern of the requests that go elsewhere.
//
// [ByKey] looks the route up, [ByPredicate] takes the first that wants the request, [ByWeight] draws by weight, for canaries,
// and [New] is told by a function of the caller's own. There is nothing that balances: package balance picks among
// services that are the same, this one among services that are not.
//
// The extra attempt of a hedge is steered like any other, and does not queue. A context that ends while the route is waited
// for ends the call with a refusal; nothing was sent.
package steer

import (
	"context"
	"sync/atomic"

	"github.com/belfry-go/belfry"
)

// layer is the name in refusals.
const layer = "steer"

// A Route is one of the services that requests may go to.
type Route[Req, Res any] struct {
	// Name says which it is, in Stats and errors. It may be empty.
	Name string
	// Service is what requests are sent to. It must not be nil.
	Service belfry.Service[Req, Res]
}

// To returns a Route; the types are inferred.
func To[Req, Res any](name string, svc belfry.Service[Req, Res]) Route[Req, Res] {
	return Route[Req, Res]{Name: name, Service: svc}
}

// A Service sends each request to one of its routes.
type Service[Req, Res any] struct {
	pick   func(ctx context.Context, req Req) int
	routes []route[Req, Res]
	lost   atomic.Uint64
}

type route[Req, Res any] struct {
	Route[Req, Res]
	counts *counts // of its own, so that routes share no cache line
}

type counts struct {
	picked, refused atomic.Uint64
	_               [48]byte
}

// New returns a Service that asks pick for the index of the route which a request goes to. pick is called once a
// call, by several goroutines at once, while nothing is reserved; a panic in it passes to the caller. An index that is out
// of range refuses the request with a [RouteError]; pick may return [None] to say so. The error of New is that of [Validate].
// A call costs no allocation beside those of pick.
func New[Req, Res any](pick func(ctx context.Context, req Req) int, routes ...Route[Req, Res]) (*Service[Req, Res], error) {
	if err := Validate(pick, routes...); err != nil {
		return nil, err
	}
	s := &Service[Req, Res]{pick: pick, routes: make([]route[Req, Res], len(routes))}
	for i, r := range routes {
		s.routes[i] = route[Req, Res]{r, new(counts)}
	}
	return s, nil
}

var _ belfry.Service[int, int] = (*Service[int, int])(nil)

// Acquire always succeeds, with the zero Permit.
func (s *Service[Req, Res]) Acquire(context.Context) (belfry.Permit, error) {
	return belfry.Permit{}, nil
}

// Call picks the route of req, reserves it and calls it.
func (s *Service[Req, Res]) Call(ctx context.Context, _ belfry.Permit, req Req) (Res, error) {
	var none Res
	if err := ctx.Err(); err != nil {
		return none, &belfry.Rejection{Layer: layer, Reason: "context done before the call", Err: err}
	}
	i := s.pick(ctx, req)
	if i < 0 || i >= len(s.routes) {
		s.lost.Add(1)
		return none, &belfry.Rejection{Layer: layer, Reason: "no route", Err: &RouteError{Pick: i, Routes: len(s.routes)}}
	}
	r := &s.routes[i]
	r.counts.picked.Add(1)
	permit, err := belfry.AcquireLate(ctx, layer, r.Service)
	if err != nil {
		r.counts.refused.Add(1)
		return none, err
	}
	return r.Service.Call(ctx, belfry.Promptly(r.Service, permit), req)
}

// Release has nothing to give back.
func (s *Service[Req, Res]) Release(belfry.Permit) {}

// Stats is what a Service has counted.
type Stats struct {
	// Routes are in the order in which they were given; those of [ByKey] in the order of their names, the rest
	// last.
	Routes []RouteStats
	// Lost counts the requests that no route was picked for.
	Lost uint64
}

// RouteStats is what a Service has counted for one route.
type RouteStats struct {
	// Name is the route's.
	Name string
	// Picked counts the requests that were to go there.
	Picked uint64
	// Refused counts those of them for which the route could not be reserved.
	Refused uint64
}

// Stats returns what the Service has counted.
func (s *Service[Req, Res]) Stats() Stats {
	stats := Stats{Routes: make([]RouteStats, len(s.routes)), Lost: s.lost.Load()}
	for i, r := range s.routes {
		stats.Routes[i] = RouteStats{Name: r.Name, Picked: r.counts.picked.Load(), Refused: r.counts.refused.Load()}
	}
	return stats
}
