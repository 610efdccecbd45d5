package belfryhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/belfry-go/belfry"
)

// Semantics returns what HTTP means, for layers and balancers that are not made by [NewStack] or [Balance]. It reads Idempotent,
// RetryStatuses, Failed, Cost, DrainBytes and DrainTime of cfg, and panics if cfg is not valid.
//
// Classify: a response that Failed, or has one of RetryStatuses, is a failure, any other a success. After one of RetryStatuses, and
// after an error, another attempt is asked for if the request is idempotent; for other requests only if no connection was
// had ([LayerDial]). Whether its body can be sent again, Copy says. (What an HTTP/2 server refuses without looking at it, an
// [http.Transport] sends again by itself.) A caller that left, a body that its caller could not read, and a request that a
// transport finds unfit are ignored.
//
// Copy: a request without a body, or whose body has a GetBody or is buffered by the [Tripper], can be sent again; any other
// as long as nothing of it has been read. Header and URL of the copy are its own.
//
// Idempotent: a request that is not is never hedged, whatever its body; nor is one for an upgrade, which would hold two
// connections.
//
// Until: a call is over when the body has been read to its end or to an error, or was closed; a 101 when its body
// was closed. The body is wrapped once, however many layers ask. Discard reads the body within bounds, and closes it.
func Semantics(cfg ...Config) belfry.Semantics[*http.Request, *http.Response] {
	c := mustOnly(cfg)
	return belfry.Semantics[*http.Request, *http.Response]{
		Classify:   c.classify,
		Copy:       repeat,
		Idempotent: func(req *http.Request) bool { return req.Header.Get("Upgrade") == "" && c.Idempotent(req) },
		Until:      until,
		Cost:       c.Cost,
		Discard:    c.discard,
	}
}

// Idempotent reports whether req may be sent a second time although the first may have been carried out: its method is
// idempotent (GET, HEAD, OPTIONS, TRACE, PUT, DELETE), or it has an Idempotency-Key.
func Idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	// The header net/http knows under two names.
	_, key := req.Header["Idempotency-Key"]
	_, xKey := req.Header["X-Idempotency-Key"]
	return key || xKey
}

// BodyCost returns a cost for [Config]: a request is as much work as an ordinary one, and once more for each per bytes of its body. per is at
// least 1. A body of unknown length counts as none.
func BodyCost(per int64) func(req *http.Request) int {
	if per < 1 {
		panic("belfryhttp: BodyCost needs at least a byte, got " + strconv.FormatInt(per, 10))
	}
	return func(req *http.Request) int { return 1 + int(max(req.ContentLength, 0)/per) }
}

// Failed reports whether res counts against the server: a status of 500 or above, or 429. Two of them do not, 501 and 505:
// they say something about the request, and a client that asks for the impossible must not make a server look ill. A 429 does,
// for it is fast without having done anything.
func Failed(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return res.StatusCode >= 500
}

func (c *Config) classify(res *http.Response, err error) belfry.Outcome {
	if err != nil {
		return c.classifyError(err)
	}
	retry := slices.Contains(c.RetryStatuses, res.StatusCode)
	if !retry && !c.Failed(res) {
		return belfry.Outcome{}
	}
	return belfry.Outcome{
		Kind:       belfry.Failure,
		Retry:      retry && res.Request != nil && c.Idempotent(res.Request),
		RetryAfter: retryAfter(res),
	}
}

func (c *Config) classifyError(err error) belfry.Outcome {
	if errors.Is(err, context.Canceled) {
		return belfry.Outcome{Kind: belfry.Ignored}
	}
	if r, ok := errors.AsType[*belfry.Rejection](err); ok && r.Layer == LayerDial {
		return belfry.Outcome{Kind: belfry.Failure, Retry: true}
	}
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
		out := belfry.ClassifyError(err)
		out.Retry = false // of a request that is not known
		return out
	case e.fault != ofServer:
		return belfry.Outcome{Kind: belfry.Ignored}
	default:
		return belfry.Outcome{Kind: belfry.Failure, Retry: c.Idempotent(e.Request)}
	}
}
