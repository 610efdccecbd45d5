package belfryhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
)

// heated returns a balancer over a:80 of n.
func heated(t *testing.T, n *network, cfg Config, protocols *http.Protocols) *balance.Balancer[*http.Request, *http.Response] {
	t.Helper()
	cfg.Transport = n.transport(protocols)
	b, err := Balance(discover.List("http://a"), balance.Config{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// wantOK asks b for /, and fails if the answer is not 200.
func wantOK(t *testing.T, b belfry.Service[*http.Request, *http.Response]) {
	t.Helper()
	res, err := RoundTripper(b).RoundTrip(newRequest(t, "GET", "http://x", nil))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", res, err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
}

func TestWarmOpensConnectionsBeforeTheFirstRequest(t *testing.T) {
	for name, c := range map[string]struct {
		protocols *http.Protocols
		warm      int
		want      int32
	}{"HTTP/1": {nil, 4, 4}, "one": {nil, 1, 1}, "none": {nil, 0, 0}, "HTTP/2": {h2c(), 4, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				var asked atomic.Int32
				all := newBarrier(max(int(c.want), 1))
				h := n.serve(func(_ http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					all.wait()
				})
				b := heated(t, n, Config{Warm: c.warm}, c.protocols)
				time.Sleep(warmSettles)
				synctest.Wait()
				if opened, live := h.opened.Load(), h.live.Load(); opened != c.want || live != c.want || asked.Load() != 0 {
					t.Errorf("before the first request, %d connections were opened and %d are open, want %d, and there were %d requests", opened, live, c.want, asked.Load())
				}
				if s := b.Stats().Endpoints; len(s) != 1 || s[0].State != balance.Ready {
					t.Errorf("the endpoint is not ready: %+v", s)
				}
				for range 3 {
					done := make(chan struct{})
					for range max(c.want, 1) {
						go func() {
							defer func() { done <- struct{}{} }()
							wantOK(t, b)
						}()
					}
					for range max(c.want, 1) {
						<-done
					}
				}
				if opened := h.opened.Load(); opened != max(c.want, 1) {
					t.Errorf("%d connections were opened in all, want %d", opened, c.want)
				}
				b.Close()
				synctest.Wait()
				if live := h.live.Load(); live != 0 {
					t.Errorf("%d connections are open after Close", live)
				}
			})
		})
	}
}

func TestWarmKeepsAnEndpointWaitingWithinBounds(t *testing.T) {
	for name, c := range map[string]struct {
		dial func(ctx context.Context) error // nil goes on
		took time.Duration
	}{
		"slow":    {func(ctx context.Context) error { time.Sleep(time.Second); return nil }, time.Second + warmSettles},
		"refused": {func(context.Context) error { return errors.New("connection refused") }, 0},
		"stuck":   {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, warmPatience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.serve(func(http.ResponseWriter, *http.Request) {})
				tr := n.transport(nil)
				var warmed atomic.Bool
				tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if !warmed.Load() {
						if err := c.dial(ctx); err != nil {
							return nil, err
						}
					}
					return n.dial(ctx, network, addr)
				}
				begun := time.Now()
				b, err := Balance(discover.List("http://a"), balance.Config{}, Config{Warm: 2, Transport: tr})
				if err != nil {
					t.Fatal(err)
				}
				defer b.Close()
				permit, err := b.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				b.Release(permit)
				if took := time.Since(begun); took != c.took {
					t.Errorf("it was ready after %v, want %v", took, c.took)
				}
				warmed.Store(true)
				wantOK(t, b)
			})
		})
	}
	t.Run("removed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			n.listen("a:80") // and nobody accepts
			begun := time.Now()
			b := heated(t, n, Config{Warm: 3}, nil)
			synctest.Wait()
			b.Close()
			if took := time.Since(begun); took != 0 {
				t.Errorf("Close took %v", took)
			}
		})
	})
}

func TestWarmWithFewerConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		h := n.serve(func(http.ResponseWriter, *http.Request) {})
		tr := n.transport(nil)
		tr.MaxConnsPerHost = 2
		b, err := Balance(discover.List("http://a"), balance.Config{}, Config{Warm: 5, Transport: tr})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		synctest.Wait()
		wantOK(t, b)
		if opened := h.opened.Load(); opened != 2 {
			t.Errorf("%d connections were opened, want 2", opened)
		}
		tr.DisableKeepAlives = true
		b2, err := Balance(discover.List("http://a"), balance.Config{}, Config{Warm: 5, Transport: tr})
		if err != nil {
			t.Fatal(err)
		}
		defer b2.Close()
		synctest.Wait()
		if opened := h.opened.Load(); opened != 2 {
			t.Errorf("%d connections were opened that nobody may keep", opened-2)
		}
	})
}

// overTLS is a server with TLS at listener, which counts connections and requests.
func overTLS(t *testing.T, listener net.Listener, http2 bool) (server *httptest.Server, opened, requests *atomic.Int32) {
	opened, requests = new(atomic.Int32), new(atomic.Int32)
	server = &httptest.Server{Listener: listener, EnableHTTP2: http2, Config: &http.Server{
		ErrorLog: quiet(),
		ConnState: connState(func(s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
		}),
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			if r.ProtoMajor == 2 != http2 {
				t.Errorf("a request by %s", r.Proto)
			}
		}),
	}}
	server.StartTLS()
	return server, opened, requests
}

// With TLS, the handshakes are over before the first request, and so is the question which protocol it is.
func TestWarmOverTLS(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		want := map[bool]int32{false: 3, true: 1}[http2]
		t.Run(fmt.Sprint("HTTP/2 ", http2), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				server, opened, requests := overTLS(t, n.listen("a:443"), http2)
				defer server.Close()
				tr := server.Client().Transport.(*http.Transport)
				tr.DialContext, tr.TLSClientConfig.ServerName = n.dial, "example.com"
				svc, err := Dial(t.Context(), "https://a", Config{Warm: 3, Transport: tr})
				if err != nil {
					t.Fatal(err)
				}
				defer svc.(io.Closer).Close()
				synctest.Wait()
				if opened.Load() != want || requests.Load() != 0 {
					t.Errorf("%d connections were opened, want %d, and there were %d requests", opened.Load(), want, requests.Load())
				}
				for range 5 {
					wantOK(t, svc)
				}
				if opened.Load() != want || requests.Load() != 5 {
					t.Errorf("%d connections were opened in all, want %d, for %d requests", opened.Load(), want, requests.Load())
				}
			})
		})
		t.Run(fmt.Sprint("on a real socket, HTTP/2 ", http2), func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server, opened, requests := overTLS(t, l, http2)
			defer server.Close()
			tr := server.Client().Transport.(*http.Transport)
			tr.DialContext = (&net.Dialer{}).DialContext
			svc, err := Dial(t.Context(), server.URL, Config{Warm: 3, Transport: tr})
			if err != nil {
				t.Fatal(err)
			}
			defer svc.(io.Closer).Close()
			if opened.Load() != want || requests.Load() != 0 {
				t.Errorf("%d connections were opened, want %d, and there were %d requests", opened.Load(), want, requests.Load())
			}
			wantOK(t, svc)
		})
	}
}

// A server that takes the connection, and never answers the handshake.
func TestWarmGivesUpAHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		h := n.listen("a:443")
		go func() {
			for {
				c, err := h.Accept()
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(io.Discard, c) }()
			}
		}()
		begun := time.Now()
		svc, err := Dial(t.Context(), "https://a", Config{Warm: 2, Transport: n.transport(nil)})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != warmPatience {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		if live := h.live.Load(); live != 0 {
			t.Errorf("%d connections are left", live)
		}
		_ = svc.(io.Closer).Close()
	})
}

func TestWarmValidate(t *testing.T) {
	for _, c := range []Config{{Warm: -1}, {Warm: 513}, {Warm: 11, IdleConns: 10}} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "Warm must be from 0 to") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (Config{Warm: 10, IdleConns: 10}).Validate(); err != nil {
		t.Error(err)
	}
	if _, err := Dial(t.Context(), "http://a", Config{Warm: -1}); err == nil {
		t.Error("Dial took a Config that is not valid")
	}
}
