package steer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/belfry-go/belfry"
)

// ByKey returns a Service that sends a request to the service which routes has for its key, and to rest if it has none. rest may
// be nil, where such a request is refused with a [RouteError]. A route has its key for a name; that of rest is empty.
// key is called by several goroutines at once and must not be nil. There is at least one route, rest included. A later change
// of routes has no effect.
func ByKey[K comparable, Req, Res any](key func(req Req) K, routes map[K]belfry.Service[Req, Res], rest belfry.Service[Req, Res]) (*Service[Req, Res], error) {
	if key == nil {
		return nil, errors.New("steer: key must not be nil")
	}
	index := make(map[K]int, len(routes))
	list := make([]Route[Req, Res], 0, len(routes)+1)
	byName := func(a, b K) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	for _, k := range slices.SortedFunc(maps.Keys(routes), byName) {
		index[k] = len(list)
		list = append(list, To(fmt.Sprint(k), routes[k]))
	}
	otherwise := None
	if rest != nil {
		otherwise = len(list)
		list = append(list, To("", rest))
	}
	return New(func(_ context.Context, req Req) int {
		if i, ok := index[key(req)]; ok {
			return i
		}
		return otherwise
	}, list...)
}

// A Wanted route takes the requests that it wants.
type Wanted[Req, Res any] struct {
	Route[Req, Res]
	// Wants says whether a request is for this route. Nil means every request, as is fit for the last one. It is called by several goroutines at once.
	Wants func(req Req) bool
}

// When returns a route for the requests of which wants holds.
func When[Req, Res any](wants func(req Req) bool, name string, svc belfry.Service[Req, Res]) Wanted[Req, Res] {
	return Wanted[Req, Res]{Route: To(name, svc), Wants: wants}
}

// Otherwise returns a route for every request; it goes last.
func Otherwise[Req, Res any](name string, svc belfry.Service[Req, Res]) Wanted[Req, Res] {
	return Wanted[Req, Res]{Route: To(name, svc)}
}

// ByPredicate returns a Service that sends a request to the first route that wants it. One that no route wants is refused
// with a [RouteError]. There is at least one route, and only the last may want every request.
func ByPredicate[Req, Res any](routes ...Wanted[Req, Res]) (*Service[Req, Res], error) {
	list := make([]Route[Req, Res], len(routes))
	for i, r := range routes {
		if r.Wants == nil && i < len(routes)-1 {
			return nil, fmt.Errorf("steer: route %d, %q, wants every request and must be the last of %d", i, r.Name, len(routes))
		}
		list[i] = r.Route
	}
	routes = slices.Clone(routes)
	return New(func(_ context.Context, req Req) int {
		return slices.IndexFunc(routes, func(r Wanted[Req, Res]) bool { return r.Wants == nil || r.Wants(req) })
	}, list...)
}

// A Weighted route takes a share of the requests.
type Weighted[Req, Res any] struct {
	Route[Req, Res]
	// Weight is its share, of the sum of all weights. It is at least 0, where it gets nothing.
	Weight int
}

// Share returns a route that takes weight of the sum of all weights.
func Share[Req, Res any](weight int, name string, svc belfry.Service[Req, Res]) Weighted[Req, Res] {
	return Weighted[Req, Res]{Route: To(name, svc), Weight: weight}
}

// ByWeight returns a Service that draws the route of each request: a route's chance is its weight divided by the sum of all,
// exactly, whatever the weights. A request is drawn for once, also if its route is not ready: a canary that does not
// keep up shows it, and does not push its requests off to others. random need not be safe for concurrent use; nil means the
// runtime's own source. There is at least one route, and weights are at least 0, with a sum of 1 to [math.MaxInt].
func ByWeight[Req, Res any](random rand.Source, routes ...Weighted[Req, Res]) (*Service[Req, Res], error) {
	list := make([]Route[Req, Res], len(routes))
	ends := make([]int, len(routes)) // of the routes' parts of 0 to the sum
	sum := 0
	for i, r := range routes {
		switch {
		case r.Weight < 0:
			return nil, fmt.Errorf("steer: weight of route %d, %q, must be at least 0, got %d", i, r.Name, r.Weight)
		case r.Weight > math.MaxInt-sum:
			return nil, fmt.Errorf("steer: weights must add up to at most %d", math.MaxInt)
		}
		sum += r.Weight
		list[i], ends[i] = r.Route, sum
	}
	if len(routes) > 0 && sum == 0 {
		return nil, errors.New("steer: weights must add up to at least 1, got 0")
	}
	draw := drawer(random)
	return New(func(context.Context, Req) int { return sort.SearchInts(ends, draw(sum)+1) }, list...)
}

// drawer returns a function that draws a number below n with equal chances, from random or the runtime's own source.
func drawer(random rand.Source) func(n int) int {
	if random == nil {
		return rand.IntN
	}
	var mu sync.Mutex // for random alone
	own := rand.New(random)
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return own.IntN(n)
	}
}
