package belfryhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
)

func TestRotateMakesBeforeItBreaks(t *testing.T) {
	for name, protocols := range map[string]*http.Protocols{"HTTP/1": nil, "HTTP/2": h2c()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				h := n.serve(func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/long" {
						time.Sleep(5 * time.Minute)
					}
				})
				b := heated(t, n, Config{PerAddress: 3, RotateEvery: time.Minute}, protocols)
				time.Sleep(time.Second)
				synctest.Wait()
				if s := b.Stats().Endpoints; len(s) != 3 || h.live.Load() != 3 {
					t.Fatalf("%d endpoints, %d connections", len(s), h.live.Load())
				}
				long := make(chan error, 1)
				go func() {
					res, err := RoundTripper(b).RoundTrip(newRequest(t, "GET", "http://x/long", nil))
					if err == nil {
						res.Body.Close()
					}
					long <- err
				}()
				for range 1000 {
					time.Sleep(200 * time.Millisecond)
					wantOK(t, b)
					if live := h.live.Load(); live < 3 || live > 5 { // one being made, and the one of the long request
						t.Fatalf("%d connections are open", live)
					}
					ready := 0
					for _, ep := range b.Stats().Endpoints {
						if ep.State == balance.Ready {
							ready++
						}
					}
					if ready != 3 {
						t.Fatalf("%d are ready: %+v", ready, b.Stats().Endpoints)
					}
				}
				if opened := h.opened.Load(); opened < 3+9 || opened > 3+14 {
					t.Errorf("%d connections were opened in 200 s", opened)
				}
				if err := <-long; err != nil {
					t.Errorf("the request in flight: %v", err)
				}
				b.Close()
				time.Sleep(10 * time.Second) // after which the source has asked whether it is still needed
				synctest.Wait()
				if live := h.live.Load(); live != 0 {
					t.Errorf("%d connections are left", live)
				}
			})
		})
	}
}

// An address that does not answer any more for a while: what there is of connections goes on.
func TestRotateKeepsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		h := n.serve(func(http.ResponseWriter, *http.Request) {})
		var refused atomic.Bool
		tr := n.transport(nil)
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if refused.Load() {
				return nil, errors.New("connection refused")
			}
			return n.dial(ctx, network, addr)
		}
		b, err := Balance(discover.List("http://a"), balance.Config{}, Config{PerAddress: 2, RotateEvery: 20 * time.Second, Transport: tr})
		if err != nil {
			t.Fatal(err)
		}
		defer time.Sleep(10 * time.Second)
		defer b.Close()
		wantOK(t, b)
		refused.Store(true)
		for range 60 {
			time.Sleep(time.Second)
			wantOK(t, b)
		}
		if live := h.live.Load(); live != 2 {
			t.Errorf("%d connections are left", live)
		}
		refused.Store(false)
		opened := h.opened.Load()
		time.Sleep(40 * time.Second)
		wantOK(t, b)
		if h.opened.Load() == opened || h.live.Load() != 2 {
			t.Errorf("%d connections were opened since, %d are open", h.opened.Load()-opened, h.live.Load())
		}
	})
}

func TestRotateOnARealSocket(t *testing.T) {
	var live, opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = connState(func(s http.ConnState) {
		switch s {
		case http.StateNew:
			opened.Add(1)
			live.Add(1)
		case http.StateClosed:
			live.Add(-1)
		case http.StateActive, http.StateIdle, http.StateHijacked:
		}
	})
	server.Start()
	defer server.Close()
	b, err := Balance(discover.List(server.URL), balance.Config{}, Config{PerAddress: 2, RotateEvery: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for opened.Load() < 6 {
		wantOK(t, b)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(5 * time.Second); live.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are left", live.Load())
		}
	}
}

func TestRotateValidate(t *testing.T) {
	for _, c := range []Config{{PerAddress: -1}, {PerAddress: 1001}, {RotateEvery: time.Millisecond}, {RotateEvery: -1}} {
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), "belfryhttp: discover: connections: ") {
			t.Errorf("%s: %v", fmt.Sprint(c.PerAddress, c.RotateEvery), err)
		}
	}
}
