package belfryhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"
)

const (
	// warmPatience is how long an endpoint is kept waiting for connections at most.
	warmPatience = 5 * time.Second
	// warmSettles is how long a Transport is given to put a connection that is there among its idle ones, of which it does not tell. A request that is
	// quicker gets it all the same, but has another one opened first.
	warmSettles = time.Millisecond
)

var errNotOpened = errors.New("belfryhttp: no connection could be opened")

// warm opens up to n connections to base that t keeps as idle ones, one if it speaks HTTP/2. It returns when they are there or have failed, when
// ctx has ended, or patience is over; with an error if there is none, and it was tried.
//
// An http.Transport opens connections for requests only, but one that nobody waits for any more when it is there is kept. So a request is made
// for each, which ends when dialling begins. No dialling goes on before all have ended: none of them can get a connection, and so none is sent.
func warm(ctx context.Context, t *http.Transport, base *url.URL, n int) error {
	if t.DialContext == nil || t.Dial != nil || t.DialTLS != nil || t.DialTLSContext != nil || t.DisableKeepAlives { //nolint:staticcheck // old ways, which may be set
		return nil
	}
	if t.MaxConnsPerHost > 0 {
		n = min(n, t.MaxConnsPerHost)
	}
	if speaksHTTP2(t, base) {
		n = 1
	}
	ctx, cancel := context.WithTimeout(ctx, warmPatience)
	defer cancel()
	all := make([]*opening, n)
	var asked sync.WaitGroup
	for i := range all {
		all[i] = &opening{ctx: ctx, secure: base.Scheme == "https", begin: make(chan struct{}), over: make(chan struct{})}
		asked.Go(func() { all[i].ask(t, base) })
	}
	asked.Wait()
	opened := false
	if first := all[0]; first.secure { // its handshake says which protocol it is
		close(first.begin)
		all = all[1:]
		if opened = first.wait() && first.err == nil; opened && first.http2 {
			all = nil
		}
	}
	for _, o := range all {
		close(o.begin)
	}
	for _, o := range all {
		opened = o.wait() && o.err == nil || opened
	}
	if !opened {
		return errNotOpened
	}
	settled := time.NewTimer(warmSettles)
	defer settled.Stop()
	select {
	case <-settled.C:
	case <-ctx.Done():
	}
	return nil
}

// speaksHTTP2 reports whether t speaks HTTP/2 in the clear.
func speaksHTTP2(t *http.Transport, base *url.URL) bool {
	return base.Scheme == "http" && t.Protocols != nil && t.Protocols.UnencryptedHTTP2() && !t.Protocols.HTTP1()
}

// An opening is a connection that is opened before anybody needs it.
type opening struct {
	ctx    context.Context // of all
	secure bool
	leave  context.CancelFunc // of its request
	begin  chan struct{}      // closed when it may be dialled
	ended  sync.Once
	stop   func() bool   // the end of ctx from ending a handshake; set before that begins
	over   chan struct{} // closed when it is there, or has failed
	http2  bool          // it speaks that; set before over is closed, like
	err    error         // why it is not there
}

type openingKey struct{}

// openingOf returns the opening for which ctx was made, nil if there is none.
func openingOf(ctx context.Context) *opening {
	o, _ := ctx.Value(openingKey{}).(*opening)
	return o
}

// ask makes the request, and returns when it has ended.
func (o *opening) ask(t *http.Transport, base *url.URL) {
	ctx, cancel := context.WithCancel(context.WithValue(o.ctx, openingKey{}, o))
	defer cancel()
	o.leave = cancel
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{TLSHandshakeDone: func(s tls.ConnectionState, err error) {
		o.end(s.NegotiatedProtocol == "h2", err)
	}})
	req := (&http.Request{Method: http.MethodHead, URL: base, Host: base.Host, Header: http.Header{}}).WithContext(ctx)
	if res, err := t.RoundTrip(req); err == nil {
		res.Body.Close()
	}
	if ctx.Err() == nil { // it did not come to dialling
		o.end(false, errNotOpened)
	}
}

// dial dials for t, once it may.
func (o *opening) dial(ctx context.Context, network, addr string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (net.Conn, error) {
	o.leave()
	select {
	case <-o.begin:
	case <-o.ctx.Done():
		return nil, errNotOpened
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, openingKey{}, (*opening)(nil)))
	defer cancel()
	defer context.AfterFunc(o.ctx, cancel)()
	c, err := dial(ctx, network, addr)
	if err != nil {
		o.end(false, err)
		return nil, err
	}
	w, ok := c.(*conn)
	if !ok {
		w = &conn{Conn: c}
	}
	if !o.secure {
		o.end(false, nil)
		return w, nil
	}
	o.stop = context.AfterFunc(o.ctx, func() { c.Close() }) // nothing else bounds the handshake
	w.ended = func() { o.end(false, errNotOpened) }
	return w, nil
}

func (o *opening) end(http2 bool, err error) {
	o.ended.Do(func() {
		o.http2, o.err = http2, err
		if o.stop != nil {
			o.stop()
		}
		close(o.over)
	})
}

// wait waits until o is over, and reports whether it was before ctx has ended.
func (o *opening) wait() bool {
	select {
	case <-o.over:
		return true
	case <-o.ctx.Done():
		return false
	}
}
