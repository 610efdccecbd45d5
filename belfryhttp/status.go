package belfryhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/filter"
	"github.com/belfry-go/belfry/retry"
)

// ReasonHeader is the header field in which an answer that a belfry made itself says why.
const ReasonHeader = "X-Belfry-Reason"

// RetryHeader is the header field by which an answer asks those further out not to try again, with the value "no": a
// service that retries was out of budget. A [Leaf] obeys it on behalf of all layers above.
const RetryHeader = "X-Belfry-Retry"

const (
	retryNo         = "no"
	reasonNoAttempt = "no further attempt"
)

// StatusClientGone is what [Status] calls a request whose caller has left. It is for logs: nobody is there to see it.
const StatusClientGone = 499

// Status returns what a server answers when a call of a service has failed with err, why in a few words that
// are fit for strangers, and after how long another try is worth it (0: unknown). The error's own text may name
// hosts, and belongs in a log.
//
//   - A refusal ([belfry.ErrRejected]) is 503, also one by a deadline while waiting for room: the layer that refused, and its
//     reason. One of a rate limit is 429, and a request that a filter has rejected 403.
//   - A deadline that has passed while a server was connected to or asked is 504.
//   - Any other failure of that server is 502, also that there is no connection to it.
//   - A caller that has left is [StatusClientGone]; one whose request cannot be read or sent is 400, or 413 if it was too long.
//   - The error of a request whose last answer was discarded is that answer's status.
//
// Of no error it is 200.
func Status(err error) (code int, reason string, retryAfter time.Duration) {
	if err == nil {
		return http.StatusOK, "", 0
	}
	if errors.Is(err, context.Canceled) {
		return StatusClientGone, "client gone", 0
	}
	if e, ok := errors.AsType[*retry.Error](err); ok {
		if res, ok := e.Discarded.(*http.Response); ok && res != nil {
			return res.StatusCode, reasonNoAttempt, e.Outcome.RetryAfter
		}
	}
	if r, ok := errors.AsType[*belfry.Rejection](err); ok {
		if errors.Is(err, filter.Err) && r.Layer == "filter" { // and not a refusal that the filter's function has met
			return http.StatusForbidden, "filter: " + r.Reason, 0
		}
		return statusOfRejection(r)
	}
	code, reason = statusOf(err)
	return code, reason, 0
}

func statusOf(err error) (code int, reason string) {
	e, sent := errors.AsType[*Error](err)
	_, tooLong := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLong:
		return http.StatusRequestEntityTooLarge, "request body too long"
	case sent && e.fault == ofBody:
		return http.StatusBadRequest, "request body unreadable"
	case errors.Is(err, belfry.ErrRejected):
		return http.StatusServiceUnavailable, "refused"
	case isTimeout(err):
		return http.StatusGatewayTimeout, "deadline"
	case sent && e.fault == ofHead:
		return http.StatusBadRequest, "request unfit"
	default:
		return http.StatusBadGateway, "upstream"
	}
}

func statusOfRejection(r *belfry.Rejection) (code int, reason string, retryAfter time.Duration) {
	if r.Layer == LayerDial {
		if isTimeout(r.Err) {
			return http.StatusGatewayTimeout, "deadline", 0
		}
		return http.StatusBadGateway, "no connection", 0
	}
	code, reason = http.StatusServiceUnavailable, r.Layer
	if r.Reason != "" {
		reason += ": " + r.Reason
	}
	if byRate(r) {
		code = http.StatusTooManyRequests
	}
	return code, reason, r.RetryAfter
}

// byRate reports whether a rate limit is at the bottom of the refusal. A layer above may have said so in its own words.
func byRate(r *belfry.Rejection) bool {
	for ok := true; ok; r, ok = errors.AsType[*belfry.Rejection](r.Err) {
		if r.Layer == "rate" {
			return true
		}
	}
	return false
}

// WriteError answers with the [Status] of err: the reason in [ReasonHeader] and as text, and Retry-After, in whole
// seconds, with 429 and 503. If nobody knows how long that is, it is one second. Nothing may have been written to w.
func WriteError(w http.ResponseWriter, err error) {
	code, reason, after := Status(err)
	w.Header().Set(ReasonHeader, reason)
	if errors.Is(err, retry.ErrOutOfBudget) {
		w.Header().Set(RetryHeader, retryNo)
	}
	if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", formatRetryAfter(after))
	}
	text := http.StatusText(code)
	if code == StatusClientGone {
		text = "Client Closed Request"
	}
	http.Error(w, fmt.Sprintf("%d %s: %s", code, text, reason), code)
}

// formatRetryAfter rounds up: who comes back too early is refused again.
func formatRetryAfter(d time.Duration) string {
	seconds := (min(d, maxRetryAfter) + time.Second - 1) / time.Second
	return strconv.FormatInt(int64(max(seconds, 1)), 10)
}
