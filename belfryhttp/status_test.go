package belfryhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/retry"
)

func TestStatus(t *testing.T) {
	get := newRequest(t, "GET", "http://a", nil)
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, c := range []struct {
		name   string
		err    error
		code   int
		reason string
		after  time.Duration
	}{
		{"nothing", nil, 200, "", 0},
		{"full", &belfry.Rejection{Layer: "limit", Reason: "full", RetryAfter: 3 * time.Second}, 503, "limit: full", 3 * time.Second},
		{"no reason", &belfry.Rejection{Layer: "shed"}, 503, "shed", 0},
		{"wrapped", fmt.Errorf("call: %w", &belfry.Rejection{Layer: "buffer", Reason: "full"}), 503, "buffer: full", 0},
		{"waited in vain", &belfry.Rejection{Layer: "limit", Err: context.DeadlineExceeded}, 503, "limit", 0},
		{"waited and left", &belfry.Rejection{Layer: "limit", Err: context.Canceled}, StatusClientGone, "client gone", 0},
		{"bare", belfry.ErrNotReady, 503, "refused", 0},
		{"rate", &belfry.Rejection{Layer: "rate", Reason: "too fast", RetryAfter: time.Second}, 429, "rate: too fast", time.Second},
		{"rate, shed", &belfry.Rejection{Layer: "shed", RetryAfter: time.Second, Err: &belfry.Rejection{Layer: "rate"}}, 429, "shed", time.Second},
		{"no endpoint", &belfry.Rejection{Layer: "balance", Reason: "no endpoint is ready", Err: &balance.NoEndpointsError{Err: belfry.ErrNotReady}}, 503, "balance: no endpoint is ready", 0},
		{"no connection", &belfry.Rejection{Layer: LayerDial, Err: refused}, 502, "no connection", 0},
		{"no connection in time", &belfry.Rejection{Layer: LayerDial, Err: &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}}, 504, "deadline", 0},
		{"deadline", &Error{Request: get, Err: context.DeadlineExceeded}, 504, "deadline", 0},
		{"plain deadline", context.DeadlineExceeded, 504, "deadline", 0},
		{"network timeout", &Error{Request: get, Err: os.ErrDeadlineExceeded}, 504, "deadline", 0},
		{"reset", &Error{Request: get, Err: errors.New("connection reset")}, 502, "upstream", 0},
		{"left", &Error{Request: get, Err: context.Canceled}, StatusClientGone, "client gone", 0},
		{"body broken", &Error{Request: get, Err: errors.New("unexpected EOF"), fault: ofBody}, 400, "request body unreadable", 0},
		{"body too long", &Error{Request: get, Err: &http.MaxBytesError{Limit: 1}, fault: ofBody}, 413, "request body too long", 0},
		{"unfit", &Error{Request: get, Err: errors.New("invalid header"), fault: ofHead}, 400, "request unfit", 0},
		{"too late to be sent", &Error{Request: get, Err: context.DeadlineExceeded, fault: ofHead}, 504, "deadline", 0},
		{"anything", errors.New("what?"), 502, "upstream", 0},
		{"discarded", &retry.Error{Discarded: &http.Response{StatusCode: 429}, Outcome: belfry.Outcome{RetryAfter: time.Minute}, Cause: errors.New("x")}, 429, "no further attempt", time.Minute},
		{"discarded, left", &retry.Error{Discarded: &http.Response{StatusCode: 503}, Cause: context.Canceled}, StatusClientGone, "client gone", 0},
		{"out of budget", &retry.Error{Last: &Error{Request: get, Err: errors.New("reset")}, Cause: retry.ErrOutOfBudget}, 502, "upstream", 0},
	} {
		code, reason, after := Status(c.err)
		if code != c.code || reason != c.reason || after != c.after {
			t.Errorf("%s: %d %q %v, want %d %q %v", c.name, code, reason, after, c.code, c.reason, c.after)
		}
	}
}

func TestWriteError(t *testing.T) {
	secret := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 80}, Err: errors.New("refused")}
	for _, c := range []struct {
		err         error
		code        int
		reason      string
		after, text string
	}{
		{&belfry.Rejection{Layer: "limit", Reason: "full"}, 503, "limit: full", "1", "503 Service Unavailable: limit: full\n"},
		{&belfry.Rejection{Layer: "rate", RetryAfter: 1001 * time.Millisecond}, 429, "rate", "2", "429 Too Many Requests: rate\n"},
		{&belfry.Rejection{Layer: "rate", RetryAfter: 1<<63 - 1}, 429, "rate", "31536000", ""},
		{&belfry.Rejection{Layer: LayerDial, Err: secret}, 502, "no connection", "", "502 Bad Gateway: no connection\n"},
		{context.DeadlineExceeded, 504, "deadline", "", ""},
		{context.Canceled, 499, "client gone", "", "499 Client Closed Request: client gone\n"},
	} {
		w := httptest.NewRecorder()
		WriteError(w, c.err)
		if w.Code != c.code || w.Header().Get(ReasonHeader) != c.reason || w.Header().Get("Retry-After") != c.after {
			t.Errorf("%v: %d %v", c.err, w.Code, w.Header())
		}
		if text := w.Body.String(); c.text != "" && text != c.text || strings.Contains(text, "10.1.2.3") {
			t.Errorf("%v: %q", c.err, text)
		}
		if w.Header().Get(RetryHeader) != "" {
			t.Errorf("%v: asks not to be tried again", c.err)
		}
	}
	w := httptest.NewRecorder()
	WriteError(w, &retry.Error{Last: errors.New("reset"), Cause: retry.ErrOutOfBudget})
	if w.Code != 502 || w.Header().Get(RetryHeader) != "no" {
		t.Errorf("out of budget: %d %v", w.Code, w.Header())
	}
}
