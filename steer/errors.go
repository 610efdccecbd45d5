package steer

import (
	"context"
	"errors"
	"fmt"
)

// None is an index that is never a route's.
const None = -1

// A RouteError says that a request had no route to go to: the index that was picked is out of range. errors.AsType finds it in
// the refusal, which matches [belfry.ErrRejected], for nothing was sent.
type RouteError struct {
	// Pick is the index that was picked, [None] if no route wants the request.
	Pick int
	// Routes is how many there are.
	Routes int
}

// Error says which index is out of range.
func (e *RouteError) Error() string {
	if e.Pick == None {
		return fmt.Sprintf("steer: none of %d routes is for this request", e.Routes)
	}
	return fmt.Sprintf("steer: picked route %d, and there are 0 to %d", e.Pick, e.Routes-1)
}

// Validate says whether [New] takes pick and routes: pick is not nil, there is at least one route, and each has a service.
func Validate[Req, Res any](pick func(ctx context.Context, req Req) int, routes ...Route[Req, Res]) error {
	if pick == nil {
		return errors.New("steer: pick must not be nil")
	}
	return validateRoutes(routes)
}

func validateRoutes[Req, Res any](routes []Route[Req, Res]) error {
	if len(routes) == 0 {
		return errors.New("steer: routes must be at least 1, got 0")
	}
	for i, r := range routes {
		if r.Service == nil {
			return fmt.Errorf("steer: service of route %d, %q, must not be nil", i, r.Name)
		}
	}
	return nil
}
