package balance

import (
	"fmt"
	"strings"
	"time"

	"github.com/belfry-go/belfry"
)

const layer = "balance"

// errClosed is the refusal of a Balancer that is closed.
var errClosed error = &belfry.Rejection{Layer: layer, Reason: "closed", Err: belfry.ErrClosed}

// A NoEndpointsError says what is the matter with every endpoint when none could be had. It is found with [errors.AsType] in a
// refusal of [Balancer.Acquire]: when there is none left, when none was discovered in time, and when the caller left
// while endpoints were in trouble.
type NoEndpointsError struct {
	// Endpoints is what there is.
	Endpoints []EndpointError
	// Discovery is the last error of the source, nil if it has made a change since.
	Discovery error
	// Err is [belfry.ErrNotReady], the error of the caller's context, or [belfry.ErrClosed] if there will never be an
	// endpoint again: the source has ended, and all that it has named are closed.
	Err error
}

// An EndpointError says what is the matter with one endpoint.
type EndpointError struct {
	Key, Addr string
	State     State
	// Err is the last error of dialling it or of its Acquire. Nil means that it is just not ready.
	Err error
}

// Unwrap returns Err. The endpoints' errors are not matched: they are of several, and about one attempt each.
func (e *NoEndpointsError) Unwrap() error { return e.Err }

// Count returns the number of endpoints in state.
func (e *NoEndpointsError) Count(state State) int {
	n := 0
	for _, ep := range e.Endpoints {
		if ep.State == state {
			n++
		}
	}
	return n
}

// shown is how many endpoints are named in the text of a NoEndpointsError.
const shown = 3

// Error counts the endpoints by state and shows the errors of the first few.
func (e *NoEndpointsError) Error() string {
	var b strings.Builder
	b.WriteString(e.counts())
	left := shown
	for _, ep := range e.Endpoints {
		switch {
		case ep.Err == nil:
		case left > 0:
			fmt.Fprintf(&b, "; %s: %v", ep.Key, ep.Err)
			left--
		default:
			b.WriteString("; …")
			return b.String()
		}
	}
	if e.Discovery != nil {
		fmt.Fprintf(&b, "; discovery: %v", e.Discovery)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// counts returns "no endpoints", or "3 endpoints: 2 dialling, 1 closed".
func (e *NoEndpointsError) counts() string {
	switch len(e.Endpoints) {
	case 0:
		return "no endpoints"
	case 1:
		return "1 endpoint: " + e.Endpoints[0].State.String()
	}
	var parts []string
	for state := range states {
		if n := e.Count(state); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", n, state))
		}
	}
	return fmt.Sprintf("%d endpoints: %s", len(e.Endpoints), strings.Join(parts, ", "))
}

// A PanicError is a panic of a function that the Balancer has called in a goroutine of its own: dial, an endpoint's
// Acquire or Close, or the source. It is that endpoint's error, or discovery's.
type PanicError struct {
	// Value is what it panicked with.
	Value any
	// Stack is where.
	Stack []byte
}

// Error returns the value as text.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// refusal returns the error for a caller that found nobody ready and does not wait, or no longer: cause says why.
func (b *Balancer[Req, Res]) refusal(cause error, again time.Duration) error {
	s := b.ready.Load()
	if len(s.eps) == 0 || b.troubled.Load() > 0 {
		return b.explain(cause, again)
	}
	return &belfry.Rejection{Layer: layer, Reason: "no endpoint is ready", InFlight: s.inFlight(), RetryAfter: again, Err: cause}
}

// explain is refusal with what there is to say about the endpoints.
func (b *Balancer[Req, Res]) explain(cause error, again time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.hopeless(); err != nil {
		return err
	}
	r := b.noEndpoints(cause, "no endpoint is ready")
	r.RetryAfter = again
	return r
}

// noEndpoints describes the endpoints that there are. mu is held.
func (b *Balancer[Req, Res]) noEndpoints(cause error, reason string) *belfry.Rejection {
	e := &NoEndpointsError{Discovery: b.source, Err: cause}
	for _, ep := range b.listed {
		if ep.phase != removed {
			e.Endpoints = append(e.Endpoints, EndpointError{Key: ep.key, Addr: ep.addr, State: ep.state(), Err: ep.err})
		}
	}
	return &belfry.Rejection{Layer: layer, Reason: reason, InFlight: b.ready.Load().inFlight(), Err: e}
}

func (s *set[Req, Res]) inFlight() int {
	n := 0
	for _, ep := range s.picks {
		_, calls := ep.Held()
		n += calls
	}
	return n
}
