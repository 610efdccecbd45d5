package belfryhttp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
)

// A tripFunc is an http.RoundTripper without a network.
type tripFunc func(req *http.Request) (*http.Response, error)

func (f tripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func newRequest(t testing.TB, method, to string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, to, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// newTransport returns a transport that is cleaned up.
func newTransport(t testing.TB) *http.Transport {
	tr := NewTransport(0)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// deadAddr is where nobody listens.
func deadAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l.Addr().String()
}

func wantRefusal(t *testing.T, err error, layer string) {
	t.Helper()
	r, ok := errors.AsType[*belfry.Rejection](err)
	if !ok || r.Layer != layer {
		t.Errorf("got %v (%T), want a refusal of %q", err, err, layer)
	}
}

func wantSent(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*Error](err); !ok || errors.Is(err, belfry.ErrRejected) {
		t.Errorf("got %v (%T), want an Error: it may have been sent", err, err)
	}
}

func TestLeafPassesTheRequestOnUnderTheContextOfCall(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "call")
	var got *http.Request
	leaf := Transport(tripFunc(func(req *http.Request) (*http.Response, error) {
		got = req
		return &http.Response{StatusCode: 200}, nil
	}))
	req := newRequest(t, "GET", "http://a/x", nil)
	before := *req
	res, err := belfry.Do(ctx, leaf, req)
	if err != nil {
		t.Fatal(err)
	}
	if got.Context().Value(key{}) != "call" || got.URL.String() != "http://a/x" {
		t.Errorf("sent %v under %v", got.URL, got.Context())
	}
	if got == req || req.Body != before.Body || req.Context() != before.Context() {
		t.Error("the caller's request was changed")
	}
	if res.Request != req || res.Body != http.NoBody {
		t.Errorf("response has request %p (want %p) and body %v", res.Request, req, res.Body)
	}
}

func TestLeafCallsAFailedDialUnsent(t *testing.T) {
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = quiet()
	tlsServer.StartTLS()
	defer tlsServer.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	hangUp := serve(t, func(conn net.Conn) { conn.Close() })
	proxied := newTransport(t)
	proxied.Proxy = func(*http.Request) (*url.URL, error) { return parseBase(deadAddr(t)) }

	for _, c := range []struct {
		name, at string
		rt       http.RoundTripper
	}{
		{"nobody listens", "http://" + deadAddr(t), newTransport(t)},
		{"the certificate is not trusted", tlsServer.URL, newTransport(t)},
		{"it does not speak TLS", "https" + strings.TrimPrefix(plain.URL, "http"), newTransport(t)},
		{"it hangs up during the handshake", "https://" + hangUp, newTransport(t)},
		{"the proxy is gone", plain.URL, proxied},
		{"a wrapped transport", "http://" + deadAddr(t), tripFunc(newTransport(t).RoundTrip)},
		{"no trace, but a dial error", "http://a", tripFunc(func(req *http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("no route")}
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := newSource(t, "hello")
			req := newRequest(t, "POST", c.at, src)
			_, err := belfry.Do(t.Context(), Transport(c.rt), req)
			wantRefusal(t, err, LayerDial)
			src.wantClosed(0)
			wantRead(t, src, "hello")
			out := mustSemantics().Judge(nil, err)
			if out.Kind != belfry.Failure || !out.Retry {
				t.Errorf("judged %+v, want a failure that may be tried again", out)
			}
		})
	}
}

func TestLeafCountsAnUnfitRequestAgainstNobody(t *testing.T) {
	for name, req := range map[string]*http.Request{
		"scheme": newRequest(t, "POST", "gopher://a", newSource(t, "x")),
		"header": func() *http.Request {
			req := newRequest(t, "POST", "http://a", newSource(t, "x"))
			req.Header["Bad Name"] = []string{""}
			return req
		}(),
	} {
		_, err := belfry.Do(t.Context(), Transport(newTransport(t)), req)
		wantSent(t, err)
		if out := mustSemantics().Judge(nil, err); out.Kind != belfry.Ignored || out.Retry {
			t.Errorf("%s: judged %+v: it is not the server's fault", name, out)
		}
		req.Body.(*source).wantClosed(1)
	}
}

func TestLeafCallsALateCancelOrTimeoutOfTheDialUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hole := make(chan struct{})
		tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			<-hole
			return nil, errors.New("unreachable")
		}}
		defer close(hole)
		src := newSource(t, "hello")
		req := newRequest(t, "POST", "http://a", src)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := belfry.Do(ctx, Transport(tr), req)
		wantRefusal(t, err, LayerDial)
		if out := mustSemantics().Judge(nil, err); !errors.Is(err, context.DeadlineExceeded) || out.Kind != belfry.Failure || !out.Retry {
			t.Errorf("a dial that timed out is %v, judged %+v", err, out)
		}

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = belfry.Do(ctx, Transport(tr), req)
		wantRefusal(t, err, LayerDial)
		if out := mustSemantics().Judge(nil, err); !errors.Is(err, context.Canceled) || out.Kind != belfry.Ignored || out.Retry {
			t.Errorf("a caller that left is %v, judged %+v", err, out)
		}
		src.wantClosed(0)
	})
}

// A transport looks at the context before it asks for a connection: a request that comes too late, on a busy machine, is not unfit.
func TestLeafDoesNotCallARequestUnfitThatComesTooLate(t *testing.T) {
	leaf := Transport(newTransport(t))
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for method, want := range map[string]belfry.Outcome{
		http.MethodPut:  {Kind: belfry.Failure, Retry: true},
		http.MethodPost: {Kind: belfry.Failure}, // another RoundTripper may have sent it
	} {
		_, err := leaf.Call(late, belfry.Permit{}, newRequest(t, method, "http://"+deadAddr(t), strings.NewReader("body"))) //nolint:bodyclose // there is none
		wantSent(t, err)
		if out := mustSemantics().Judge(nil, err); out != want {
			t.Errorf("%s: %+v of %v, want %+v", method, out, err, want)
		}
	}
}

func TestLeafCallsARequestSentIfInDoubt(t *testing.T) {
	reset := errors.New("connection reset by peer")
	for name, rt := range map[string]tripFunc{
		"no trace": func(*http.Request) (*http.Response, error) { return nil, reset },
		"a dial error, but the body was read": func(req *http.Request) (*http.Response, error) {
			_, _ = req.Body.Read(make([]byte, 1))
			req.Body.Close()
			return nil, &net.OpError{Op: "dial", Err: reset}
		},
		"a dial error after a connection was had": func(req *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(req.Context())
			trace.GetConn("a:80")
			trace.GotConn(httptrace.GotConnInfo{})
			trace.GetConn("a:80")
			return nil, &net.OpError{Op: "dial", Err: reset}
		},
		"a response too": func(*http.Request) (*http.Response, error) { return &http.Response{Body: http.NoBody}, reset },
		"nothing":        func(*http.Request) (*http.Response, error) { return nil, nil },
	} {
		src := newSource(t, "hello")
		_, err := belfry.Do(t.Context(), Transport(rt), newRequest(t, "POST", "http://a", src))
		t.Run(name, func(t *testing.T) {
			wantSent(t, err)
			src.wantClosed(1)
			if out := mustSemantics().Judge(nil, err); out.Kind != belfry.Failure || out.Retry {
				t.Errorf("judged %+v, want a failure that must not be tried again", out)
			}
		})
	}
	// Also if the body is not the leaf's to close, and was read by this attempt from a record only.
	u := &upload{src: newSource(t, "hello"), owned: true, limit: 100}
	wantRead(t, attach(t, u), "hello")
	req := newRequest(t, "POST", "http://a", nil)
	req.Body = &part{up: u}
	_, err := belfry.Do(t.Context(), Transport(tripFunc(func(req *http.Request) (*http.Response, error) {
		wantRead(t, req.Body, "hello")
		return nil, &net.OpError{Op: "dial", Err: reset}
	})), req)
	wantSent(t, err)
}

// The connection of an earlier request breaks under the second one; the transport sends that again by itself, and finds
// that nobody listens any more. What it returns is an error of dialling, but the request may have been carried out.
func TestLeafCallsARequestSentThatTheTransportTriedAgainInVain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		_, _ = http.ReadRequest(r)
		_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
		_, _ = http.ReadRequest(r)
		l.Close()
	}()
	leaf := Transport(newTransport(t))
	if _, err := belfry.Do(t.Context(), leaf, newRequest(t, "GET", "http://"+l.Addr().String(), nil)); err != nil {
		t.Fatal(err)
	}
	_, err = belfry.Do(t.Context(), leaf, newRequest(t, "GET", "http://"+l.Addr().String(), nil))
	wantSent(t, err)
	if !isDialError(err) {
		t.Errorf("got %v; the test wants a server that is gone", err)
	}
	if out := mustSemantics().Judge(nil, err); !out.Retry {
		t.Error("a GET may be sent again")
	}
}

func TestLeafTellsHTTP2ThatWasSentFromThatWhichWasNot(t *testing.T) {
	abort := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/abort" {
			panic(http.ErrAbortHandler)
		}
	}
	secure := httptest.NewUnstartedServer(http.HandlerFunc(abort))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	secured := newTransport(t)
	secured.TLSClientConfig = &tls.Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}

	clear := httptest.NewUnstartedServer(http.HandlerFunc(abort))
	clear.Config.Protocols = h2c()
	clear.Start()
	defer clear.Close()
	cleared := newTransport(t)
	cleared.Protocols = h2c()

	for name, c := range map[string]struct {
		at string
		rt *http.Transport
	}{"TLS": {secure.URL, secured}, "h2c": {clear.URL, cleared}} {
		t.Run(name, func(t *testing.T) {
			leaf := Transport(c.rt)
			for range 2 { // over a new connection, then over the same
				res, err := belfry.Do(t.Context(), leaf, newRequest(t, "GET", c.at, nil))
				if err != nil || res.ProtoMajor != 2 {
					t.Fatalf("%v, %v", res, err)
				}
				res.Body.Close()
				_, err = belfry.Do(t.Context(), leaf, newRequest(t, "POST", c.at+"/abort", newSource(t, "x")))
				wantSent(t, err)
			}
			_, err := belfry.Do(t.Context(), leaf, newRequest(t, "POST", strings.Replace(c.at, "//", "//nobody.invalid.", 1), nil))
			wantRefusal(t, err, LayerDial)
		})
	}
}

func TestLeafClosesABodyOnceEvenIfItsTransportPanics(t *testing.T) {
	src := newSource(t, "hello")
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic was lost")
			}
		}()
		leaf := Transport(tripFunc(func(*http.Request) (*http.Response, error) { panic("boom") }))
		_, _ = belfry.Do(t.Context(), leaf, newRequest(t, "POST", "http://a", src))
	}()
	src.wantClosed(1)
}

func TestLeafRefusesABodyThatIsUsedUp(t *testing.T) {
	u := &upload{src: newSource(t, "hello"), owned: true}
	wantRead(t, attach(t, u), "hello")
	req := newRequest(t, "PUT", "http://a", nil)
	req.Body = &part{up: u}
	_, err := belfry.Do(t.Context(), Transport(tripFunc(func(*http.Request) (*http.Response, error) {
		t.Error("sent")
		return nil, nil
	})), req)
	wantRefusal(t, err, "http")
	if !errors.Is(err, errSentOnce) {
		t.Error(err)
	}
}

func TestLeafIsABorderForRejections(t *testing.T) {
	foreign := &belfry.Rejection{Layer: "limit", Err: belfry.ErrClosed}
	leaf := Transport(tripFunc(func(*http.Request) (*http.Response, error) { return nil, foreign }))
	_, err := belfry.Do(t.Context(), leaf, newRequest(t, "GET", "http://a", nil))
	wantSent(t, err)
	if errors.Is(err, belfry.ErrClosed) {
		t.Error("a client used on the way is closed, this service is not")
	}
}

func TestLeafCountsItsCallersBrokenBodyAgainstNobody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	broken := errors.New("disk on fire")
	req := newRequest(t, "PUT", server.URL, io.MultiReader(strings.NewReader("hello"), errReader{broken}))
	_, err := belfry.Do(t.Context(), Transport(newTransport(t)), req)
	wantSent(t, err)
	if out := mustSemantics().Judge(nil, err); !errors.Is(err, broken) || out.Kind != belfry.Ignored || out.Retry {
		t.Errorf("got %v, judged %+v", err, out)
	}
	if code, _, _ := Status(err); code != http.StatusBadRequest {
		t.Errorf("status %d", code)
	}
}

func TestLeafCloses(t *testing.T) {
	var idle idleCounter
	if err := Transport(&idle).Close(); err != nil || idle.closed != 1 {
		t.Errorf("Close: %v, idle connections closed %d times", err, idle.closed)
	}
	if err := Transport(tripFunc(nil)).Close(); err != nil {
		t.Error(err)
	}
	client := &http.Client{Transport: RoundTripper(Transport(&idle))}
	client.CloseIdleConnections()
	if idle.closed != 2 {
		t.Error("a client's CloseIdleConnections does not get through")
	}
	(&http.Client{Transport: RoundTripper(belfry.Of(func(context.Context, *http.Request) (*http.Response, error) { return nil, nil }))}).CloseIdleConnections()
}

type idleCounter struct {
	http.RoundTripper
	closed int
}

func (c *idleCounter) CloseIdleConnections() { c.closed++ }

func TestNewTransportKeepsAsManyConnectionsAsAreUsed(t *testing.T) {
	const together = 20
	var opened atomic.Int32
	all := newBarrier(together)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { all.wait() }))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	leaf := Transport(newTransport(t))
	for range 3 {
		many(together, func() {
			res, err := belfry.Do(t.Context(), leaf, newRequest(t, "GET", server.URL, nil))
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
		})
	}
	if n := opened.Load(); n != together {
		t.Errorf("%d connections were opened for rounds of %d requests", n, together)
	}
	if tr := NewTransport(7); tr.MaxIdleConnsPerHost != 7 || tr.MaxIdleConns != 0 {
		t.Errorf("keeps %d per host, %d in all", tr.MaxIdleConnsPerHost, tr.MaxIdleConns)
	}
}
