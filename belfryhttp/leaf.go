package belfryhttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/load"
)

// LayerDial is the Layer of the [belfry.Rejection] by which a [Leaf] says that it got no connection.
const LayerDial = "dial"

// An Error is what a request failed with that was sent, or may have been. It reads like its cause, and remembers the
// request, because whether to try again depends on that.
type Error struct {
	// Request is the request as the leaf was given it.
	Request *http.Request
	// Err is what the RoundTripper returned.
	Err error

	fault fault
}

// A fault says whose it is that a request failed.
type fault uint8

const (
	ofServer fault = iota // or of the way to it
	ofBody                // it could not be read
	ofHead                // an http.Transport took the request for one that cannot be sent
)

// Error returns the text of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the cause is a timeout, for [net.Error] and [url.Error].
func (e *Error) Timeout() bool { return isTimeout(e.Err) }

var errNoResponse = errors.New("belfryhttp: RoundTripper returned neither a response nor an error")

// A Leaf is the service over an [http.RoundTripper]. [Transport] makes one.
type Leaf struct {
	rt      http.RoundTripper
	traced  bool // rt tells a trace before it asks for a connection
	rewrite func(out *http.Request)
	told    func(load.Report) // of what servers say; or nil
}

var _ belfry.Service[*http.Request, *http.Response] = (*Leaf)(nil)

// Transport returns rt as a service that is always ready. The context of Call counts, not the one in the request. The
// request is not changed, and its body not closed if the call is refused. Nil stands for [NewTransport](0).
//
// A call that got no connection comes back as a [belfry.Rejection] of [LayerDial]: nothing was sent and the body is
// as it was. [httptrace] tells: RoundTrippers that were asked for a connection and got none have sent nothing,
// whether connecting, a TLS handshake or the context has failed. So has one that got a connection of [NewTransport] or
// [Endpoint], to which then nothing was written, as when the server had closed it. Of those that do not support traces, a
// [net.OpError] of "dial" is believed. In doubt a request counts as sent, and its error is an [*Error].
func Transport(rt http.RoundTripper) *Leaf {
	if rt == nil {
		rt = NewTransport(0)
	}
	_, traced := rt.(*http.Transport)
	return &Leaf{rt: rt, traced: traced}
}

// NewTransport returns a copy of [http.DefaultTransport] that keeps up to idle connections for each host; 0 means
// 512. The standard library's default of 2 makes a client with more requests in flight open and close connections
// all the time.
func NewTransport(idle int) *http.Transport {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // a program has put something else in its place
		t = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	}
	t = t.Clone()
	if idle == 0 {
		idle = defaultIdleConns
	}
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, idle
	return watch(t)
}

// Acquire always succeeds, with the zero Permit: an [http.RoundTripper] cannot say whether it has room.
func (l *Leaf) Acquire(context.Context) (belfry.Permit, error) { return belfry.Permit{}, nil }

// Release has nothing to give back.
func (l *Leaf) Release(belfry.Permit) {}

// Call sends req. It returns when the response's header is there; the body then lives under ctx.
func (l *Leaf) Call(ctx context.Context, _ belfry.Permit, req *http.Request) (*http.Response, error) {
	var seen evidence
	out := req.WithContext(seen.watch(ctx))
	if l.rewrite != nil {
		l.rewrite(out)
	}
	body, err := attachBody(out)
	if err != nil {
		return nil, &belfry.Rejection{Layer: "http", Reason: "body used up", Err: err}
	}
	res, err := l.roundTrip(out, body)
	if err != nil {
		return nil, l.failed(ctx, req, err, &seen, body)
	}
	body.sent()
	if res.Body == nil {
		res.Body = http.NoBody
	}
	if res.Header.Get(RetryHeader) == retryNo {
		attempt.Finalize(ctx)
	}
	res.Request = req
	l.tell(res)
	return res, nil
}

// Close closes idle connections. The leaf can be used further.
func (l *Leaf) Close() error {
	if c, ok := l.rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	return nil
}

// roundTrip calls the RoundTripper and holds it to its contract: a response or an error.
func (l *Leaf) roundTrip(out *http.Request, body *leafBody) (*http.Response, error) {
	returned := false
	defer func() {
		if !returned {
			body.sent()
			body.close()
		}
	}()
	res, err := l.rt.RoundTrip(out)
	returned = true
	switch {
	case err != nil && res != nil && res.Body != nil:
		res.Body.Close()
	case err == nil && res == nil:
		err = errNoResponse
	}
	return res, err
}

// failed says what err is: the error of a request that was sent, or a refusal.
func (l *Leaf) failed(ctx context.Context, req *http.Request, err error, seen *evidence, body *leafBody) error {
	body.close() // a RoundTripper has done so already
	err = belfry.Sent(err)
	asked, got := seen.asked.Load(), seen.got.Load()
	unsent := seen.unsent()
	if (unsent || !got && (asked || isDialError(err))) && body.giveBack() || unsent && body.recorded() {
		return &belfry.Rejection{Layer: LayerDial, Reason: "not sent", Err: err}
	}
	e := &Error{Request: req, Err: err}
	switch {
	case body.failed():
		e.fault = ofBody
	case l.traced && !asked && ctx.Err() == nil: // a context that has ended is looked at before a connection is asked for
		e.fault = ofHead // most likely; it may also be a protocol that a user has registered, so it counts as sent
	}
	body.sent()
	return e
}

// An evidence is what a trace has seen of one RoundTrip.
type evidence struct {
	asked atomic.Bool // a connection was asked for
	got   atomic.Bool // a connection was had, so that something may have been written
	trace httptrace.ClientTrace

	conn   atomic.Pointer[conn] // the latest that was had, if it is one that counts
	before atomic.Int64         // what had been written to it then
	wrote  atomic.Bool          // something was written to one before it, or may have been
}

func (e *evidence) watch(ctx context.Context) context.Context {
	e.trace.GetConn = func(string) { e.asked.Store(true) }
	e.trace.GotConn = e.had
	return httptrace.WithClientTrace(ctx, &e.trace)
}

// had notes which connection was had.
func (e *evidence) had(info httptrace.GotConnInfo) {
	if e.got.Swap(true) && !e.unsent() {
		e.wrote.Store(true)
	}
	c := watched(info.Conn)
	e.conn.Store(c)
	if c != nil {
		e.before.Store(c.written.Load())
		c.idle.Store(info.WasIdle)
	}
}

// unsent reports whether nothing was written, and nothing will be, to any connection that was had. Where many requests share
// one, others may have written.
func (e *evidence) unsent() bool {
	c := e.conn.Load()
	return c != nil && !e.wrote.Load() && c.closed.Load() && c.written.Load() == e.before.Load()
}

func isDialError(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && t.Timeout()
}
