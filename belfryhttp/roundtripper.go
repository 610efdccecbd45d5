package belfryhttp

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/retry"
)

// A Tripper is the [http.RoundTripper] over a service. [RoundTripper] makes one.
type Tripper struct {
	svc          belfry.Service[*http.Request, *http.Response]
	bodyBuffer   int64
	sentOnce     atomic.Uint64
	emptiedCount atomic.Uint64
}

var _ http.RoundTripper = (*Tripper)(nil)

// RoundTripper returns svc for an [http.Client] or a reverse proxy. It keeps the promises that net/http asks for, whatever the
// layers of svc do: the request is not changed, its body is closed once, also on errors, and the response has a body.
//
// It reads BodyBuffer of cfg, and panics if cfg is not valid.
func RoundTripper(svc belfry.Service[*http.Request, *http.Response], cfg ...Config) *Tripper {
	return &Tripper{svc: svc, bodyBuffer: mustOnly(cfg).BodyBuffer}
}

// RoundTrip sends req through the service, under the request's own context, waiting for room as long as that allows.
//
// Errors are those of the service; a refusal matches [belfry.ErrRejected]. But if the service has discarded a response in favour
// of another attempt and then got no room for that ([retry.Error]), and the caller is still there, the answer is that
// response with an empty body, a header that fits, and the reason in [ReasonHeader].
//
// An answer after which the service had no budget to try again carries [RetryHeader], as it does if it came with it.
func (t *Tripper) RoundTrip(req *http.Request) (*http.Response, error) {
	out, up := t.outgoing(req)
	if up != nil {
		defer up.release()
	}
	ctx := &attempt.Context{Context: req.Context()}
	res, err := belfry.Do(ctx, t.svc, out)
	if err == nil && res == nil {
		err = errNoResponse
	}
	if err != nil {
		if res = t.emptied(req, err); res == nil {
			return nil, outward(err)
		}
	}
	if res.Body == nil {
		res.Body = http.NoBody
	}
	if ctx.Final() {
		setHeader(res, RetryHeader, retryNo)
	}
	res.Request = req // not the one that some layer has made of it
	return res, nil
}

// CloseIdleConnections is what [http.Client.CloseIdleConnections] calls. It closes those of a [Leaf], if that is the service. It cannot
// see through layers or a balancer: what is at the bottom has a Close.
func (t *Tripper) CloseIdleConnections() {
	if leaf, ok := t.svc.(*Leaf); ok {
		_ = leaf.Close()
	}
}

// outgoing returns what to send for req: req itself, or a copy whose body every attempt may close.
func (t *Tripper) outgoing(req *http.Request) (*http.Request, *upload) {
	if !hasBody(req) {
		return req, nil
	}
	up := newUpload(req, t.bodyBuffer, func() { t.sentOnce.Add(1) })
	out := req.WithContext(req.Context())
	out.Body = &part{up: up}
	if up.recorded() {
		out.GetBody = up.getBody
	}
	return out, up
}

// emptied returns the response that err tells of, without its body, nil if there is none.
func (t *Tripper) emptied(req *http.Request, err error) *http.Response {
	e, ok := errors.AsType[*retry.Error](err)
	if !ok || req.Context().Err() != nil {
		return nil
	}
	discarded, ok := e.Discarded.(*http.Response)
	if !ok || discarded == nil {
		return nil
	}
	t.emptiedCount.Add(1)
	res := *discarded
	res.Header = discarded.Header.Clone()
	res.Body = http.NoBody
	res.Trailer = nil
	res.TransferEncoding = nil
	res.Uncompressed = false
	if req.Method != http.MethodHead {
		res.ContentLength = 0
		for _, name := range bodyFields {
			res.Header.Del(name)
		}
	}
	setHeader(&res, ReasonHeader, reasonNoAttempt)
	return &res
}

// bodyFields are the header fields that describe a body.
var bodyFields = []string{
	"Content-Length", "Transfer-Encoding", "Trailer", "Content-Encoding", "Content-Range", "Content-Digest",
	"Content-Md5", "Digest", "Repr-Digest",
}

func setHeader(res *http.Response, name, value string) {
	if res.Header == nil {
		res.Header = http.Header{}
	}
	res.Header.Set(name, value)
}

// outward returns err as net/http's callers know it: without the Error around what the transport said, and as a timeout
// that [url.Error] recognises.
func outward(err error) error {
	if e, ok := err.(*Error); ok { //nolint:errorlint // what is further in is not for us to take off
		err = e.Err
	}
	if t, ok := err.(interface{ Timeout() bool }); isTimeout(err) && !(ok && t.Timeout()) {
		return &timeoutError{err}
	}
	return err
}

// A timeoutError is an error that says by a method that it is a timeout, because an error in it is one.
type timeoutError struct{ error }

func (e *timeoutError) Unwrap() error { return e.error }

// Timeout is true.
func (e *timeoutError) Timeout() bool { return true }

// Stats is what a [Tripper] has counted.
type Stats struct {
	// SentOnce is the number of requests whose body was sent and could not have been sent again: it has no GetBody, and
	// was not buffered or was longer than the buffer.
	SentOnce uint64
	// Emptied is the number of responses returned without their body.
	Emptied uint64
}

// Stats returns what was counted.
func (t *Tripper) Stats() Stats {
	return Stats{SentOnce: t.sentOnce.Load(), Emptied: t.emptiedCount.Load()}
}
