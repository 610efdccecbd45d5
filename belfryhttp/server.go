package belfryhttp

import (
	"errors"
	"net/http"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/shed"
	"github.com/belfry-go/belfry/stack"
	"github.com/belfry-go/belfry/timeout"
)

// A ServerStack is a list of layers for an [http.Handler], outermost first, like [stack.Stack] for services. There is no
// retry and no hedge in it: a response can be written once. Make one with [NewServerStack].
//
//	h, err := belfryhttp.NewServerStack().LoadShed().Buffer(500).ConcurrencyLimit(50).Timeout(2 * time.Second).Handler(mux)
//
// A ServerStack is a value: its methods return a changed copy, and may be called concurrently. Mistakes are collected, and
// reported by Handler.
type ServerStack struct {
	stack   stack.Stack[Exchange, Exchange]
	watched bool // somebody wants to know what was answered
	bounded bool // somebody else than the handler may answer
}

// NewServerStack returns a stack without layers.
func NewServerStack() ServerStack {
	return ServerStack{stack: stack.New[Exchange, Exchange]().Semantics(ServerSemantics())}
}

// LoadShed adds a layer that refuses a request exactly when what is inside is not ready now, with at most one Config; see
// package shed.
func (s ServerStack) LoadShed(cfg ...shed.Config) ServerStack {
	s.stack = s.stack.LoadShed(cfg...)
	return s
}

// Buffer adds a waiting room of bound seats, at least one, with at most one Config; see package buffer. A client that
// leaves frees its seat at once.
func (s ServerStack) Buffer(bound int, cfg ...buffer.Config) ServerStack {
	s.stack = s.stack.Buffer(bound, cfg...)
	return s
}

// ConcurrencyLimit adds a limit of n requests at a time, with at most one Config; see package limit. A request holds its place
// until its handler returns, whoever has answered it by then. Each Handler has a Limiter of its own.
func (s ServerStack) ConcurrencyLimit(n int, cfg ...limit.Config) ServerStack {
	s.stack = s.stack.ConcurrencyLimit(n, cfg...)
	return s
}

// Limiter adds a limit by a Limiter that the caller keeps, to share, to watch or to resize it.
func (s ServerStack) Limiter(l *limit.Limiter) ServerStack {
	s.stack = s.stack.Limiter(l)
	return s
}

// AdaptiveLimit adds a limit of requests at a time that is found, by how long they take, with at most one Config; see
// [limit.Adaptive]. Each Handler has an AdaptiveLimiter of its own.
func (s ServerStack) AdaptiveLimit(cfg ...limit.AdaptiveConfig) ServerStack {
	s.stack = s.stack.AdaptiveLimit(cfg...)
	return s
}

// RateLimit adds a rate of n requests in each period per, with at most one Config; see [limit.Rate]. Behind LoadShed, who would
// have to wait is answered 429 with Retry-After. Each Handler has a RateLimiter of its own.
func (s ServerStack) RateLimit(n int, per time.Duration, cfg ...limit.RateConfig) ServerStack {
	s.stack = s.stack.RateLimit(n, per, cfg...)
	return s
}

// RateLimiter adds a rate by a RateLimiter that the caller keeps, to share, to watch or to change its rate.
func (s ServerStack) RateLimiter(l *limit.RateLimiter) ServerStack {
	s.stack = s.stack.RateLimiter(l)
	return s
}

// RateLimitPerKey adds a rate of n requests in each period per for each key, such as the client's address or its account, with at
// most one Config; see [limit.RatePerKey]. What is too much is answered 429 with Retry-After at once.
func (s ServerStack) RateLimitPerKey(n int, per time.Duration, key func(Exchange) string, cfg ...limit.KeyedConfig) ServerStack {
	s.stack = s.stack.RateLimitPerKey(n, per, key, cfg...)
	return s
}

// Timeout adds a deadline, d after a request has come so far, that is above 0. Innermost it bounds the handler; outside a
// Buffer it bounds the wait in there as well. It does not bound what happens in Acquire: the line for a limit without a Buffer.
//
// If nothing was written by then, the client is answered 504 at the deadline, while the handler may still run, and writing
// fails with [http.ErrHandlerTimeout] from then on; so does reading the request's body, with [os.ErrDeadlineExceeded]. Then the
// request's context ends, with the cause [timeout.Err]. Nobody is abandoned: the call is over, and the place in a limit
// free, when the handler has noticed and returned. For the layers further out it has then failed with an error that
// matches [http.ErrHandlerTimeout] and [timeout.Err]. A deadline that passes before the handler has begun is a
// refusal.
//
// If something was written by then, only the context ends, and the handler decides. A connection that was hijacked has no
// deadline any more. Informational responses (1xx) are not counted as written.
//
// It takes at most one Config, of which it reads OnTimeout: that is told of a request that the deadline has failed, when its call is
// over. Wait and Stream are refused: the one is for who acquires and calls apart, and a handler has no response that outlives it.
//
// Over HTTP/1 the connection of a 504 is closed, lest the next request on it waits for the handler of this one. Over HTTP/2
// the client has the whole answer at the deadline too, but the stream ends with the handler: net/http has no way to end it earlier.
func (s ServerStack) Timeout(d time.Duration, cfg ...timeout.Config) ServerStack {
	if len(cfg) > 1 || timeout.Validate(d, timeout.Config{}) != nil {
		s.stack = s.stack.Timeout(d, cfg...) // knows what to say, and where
		return s
	}
	var told func(error)
	for _, c := range cfg {
		if c.Wait || c.Stream {
			s.stack = s.stack.Fail("timeout", errors.New("wait and stream must be false before a handler"))
			return s
		}
		told = c.OnTimeout
	}
	s.watched, s.bounded = true, true
	s.stack = s.stack.Layer("timeout("+d.String()+")", func(inner exchanger) exchanger { return &bound{inner, d, told} })
	return s
}

// Layer adds a layer of the caller's own, under the name that String and errors show. It may answer requests itself, by
// [Exchange.ResponseWriter]. What it returns as an error without having answered is answered by [WriteError].
func (s ServerStack) Layer(name string, layer belfry.Layer[Exchange, Exchange]) ServerStack {
	s.watched = true
	s.stack = s.stack.Layer(name, layer)
	return s
}

// String lists the layers in the order in which a request meets them, with their settings.
func (s ServerStack) String() string { return s.stack.String() }

// Handler returns h behind the layers. A request that they refuse is answered by [WriteError]: 503 with Retry-After, or 429 if it
// was by rate, and why in [ReasonHeader]; of one whose client has left before its turn came, [StatusClientGone] is for those who
// log. A panic of h passes through the layers, which give back what they hold, and means to net/http what it always does.
//
// With neither Timeout nor Layer in the stack, h gets the server's own ResponseWriter, and the layers add no allocation to
// a request that need not wait. Else h gets a ResponseWriter that does the same: flushing, hijacking, ReadFrom, trailers,
// deadlines and full duplex, by itself or by an [http.ResponseController]. It has no Unwrap, by which a handler could write past
// a 504; nor does [http.MaxBytesReader] find in it the server that it would have close the connection.
//
// Its error joins all mistakes of the stack, each with the position and the name of its layer.
func (s ServerStack) Handler(h http.Handler) (http.Handler, error) {
	svc, err := s.stack.Build(handlerService{h})
	if h == nil {
		err = errors.Join(errors.New("belfryhttp: handler must not be nil"), err)
	}
	if err != nil {
		return nil, err
	}
	return &stackHandler{svc, s.watched, s.bounded}, nil
}

// A stackHandler sends requests through a stack.
type stackHandler struct {
	svc              exchanger
	watched, bounded bool
}

func (h *stackHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.watched {
		// Nobody but the handler has written, and it does not fail.
		if _, err := belfry.Do(r.Context(), h.svc, Exchange{w: w, r: r}); err != nil {
			WriteError(w, err)
		}
		return
	}
	g := newGuard(w, r, h.bounded)
	x := Exchange{w: g.writer(), r: r, guard: g}
	if _, err := belfry.Do(r.Context(), h.svc, x); err != nil && !g.written() {
		WriteError(x.w, err)
	}
	g.finish()
}
