package belfryhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/limit"
)

func TestBalanceDirectsRequestsToEndpoints(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Host, r.URL)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, c := range []struct {
		preserve bool
		host     string
		want     string
	}{
		{false, "", host + " /api/x?q=1"},
		{false, "own", host + " /api/x?q=1"},
		{true, "", "service.example /api/x?q=1"},
		{true, "own", "own /api/x?q=1"},
	} {
		b, err := Balance(discover.List(server.URL+"/api"), balance.Config{}, Config{PreserveHost: c.preserve})
		if err != nil {
			t.Fatal(err)
		}
		req := newRequest(t, "GET", "https://service.example/x?q=1", nil)
		req.Host = c.host
		res, err := RoundTripper(b).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		wantRead(t, res.Body, c.want)
		if req.URL.Host != "service.example" || req.Host != c.host {
			t.Errorf("the request was changed: %v, Host %q", req.URL, req.Host)
		}
		b.Close()
	}
}

func TestBalanceClosesIdleConnectionsOfARemovedEndpoint(t *testing.T) {
	closed := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = connState(func(s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	})
	server.Start()
	defer server.Close()
	changes := make(chan discover.Change)
	defer close(changes)
	b, err := Balance(func(yield func(discover.Change, error) bool) {
		for c := range changes {
			if !yield(c, nil) {
				return
			}
		}
	}, balance.Config{AllowEmpty: true}, Config{PerEndpoint: limit.ConcurrencyLayer[*http.Request, *http.Response](limit.NewLimiter(1))})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	changes <- discover.Insert(server.URL)
	res, err := RoundTripper(b).RoundTrip(newRequest(t, "GET", "http://x", nil))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	changes <- discover.Remove(server.URL)
	<-closed
}

func TestBalanceLayersEachEndpoint(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	var made atomic.Int32
	b, err := Balance(discover.List(server.URL, server.URL+"/2"), balance.Config{}, Config{PerEndpoint: func(inner service) service {
		made.Add(1)
		return limit.NewConcurrency(inner, limit.NewLimiter(1))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	one, err := belfry.Reserve[*http.Request, *http.Response](t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Release()
	two, err := belfry.Reserve[*http.Request, *http.Response](t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Release()
	if _, err := belfry.Reserve[*http.Request, *http.Response](belfry.NoWait(t.Context()), b); !errors.Is(err, belfry.ErrNotReady) {
		t.Errorf("a third place on two endpoints with one each: %v", err)
	}
	if n := made.Load(); n != 2 {
		t.Errorf("%d endpoints were layered", n)
	}
}

func TestBalanceRefusesAConfigThatIsNotValid(t *testing.T) {
	if _, err := Balance(discover.List("http://a"), balance.Config{}, Config{IdleConns: -1}); err == nil || !strings.Contains(err.Error(), "IdleConns") {
		t.Errorf("got %v", err)
	}
	if _, err := Balance(discover.List("http://a"), balance.Config{MaxWait: -1}); err == nil {
		t.Error("took a balance.Config that is not valid")
	}
	if _, err := Balance(nil, balance.Config{}); err == nil {
		t.Error("took no source")
	}
}

func TestBalanceShowsAnAddressThatIsNone(t *testing.T) {
	b, err := Balance(discover.List("ftp://a"), balance.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = RoundTripper(b).RoundTrip(newRequest(t, "GET", "http://x", nil).WithContext(ctx))
	if err == nil || !strings.Contains(err.Error(), `scheme must be http or https, got "ftp"`) {
		t.Errorf("got %v", err)
	}
}

func TestEndpointTransports(t *testing.T) {
	template := &http.Transport{DisableCompression: true}
	c := Config{Transport: template}.withDefaults()
	if tr := c.newTransport(); tr == template || !tr.DisableCompression || tr.MaxIdleConnsPerHost != 512 {
		t.Errorf("%+v", tr)
	}
	template.MaxIdleConnsPerHost = 3
	if tr := c.newTransport(); tr.MaxIdleConnsPerHost != 3 {
		t.Errorf("keeps %d, the template says 3", tr.MaxIdleConnsPerHost)
	}
	c = Config{IdleConns: 7}.withDefaults()
	if tr := c.newTransport(); tr.MaxIdleConnsPerHost != 7 {
		t.Errorf("keeps %d, the Config says 7", tr.MaxIdleConnsPerHost)
	}
}

// The better of two: a dead endpoint costs its share of first attempts, and not one request.
func TestBalanceAroundADeadEndpoint(t *testing.T) {
	var served atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		served.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer server.Close()
	b, err := Balance(discover.List(server.URL, "http://"+deadAddr(t)), balance.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	client := &http.Client{Transport: RoundTripper(retriedService(b))}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			res, err := client.Post("http://x", "text/plain", newSource(t, "hello")) // neither idempotent nor replayable
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
		})
	}
	wg.Wait()
	if n := served.Load(); n != 50 {
		t.Errorf("%d of 50 were served", n)
	}
}

func TestEndpointIsWhatBalanceMakes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Host, r.URL)
	}))
	defer server.Close()
	layered := 0
	svc, err := Endpoint(server.URL+"/api", Config{PreserveHost: true, PerEndpoint: func(inner belfry.Service[*http.Request, *http.Response]) belfry.Service[*http.Request, *http.Response] {
		layered++
		return inner
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer svc.(interface{ Close() error }).Close()
	res, err := RoundTripper(svc).RoundTrip(newRequest(t, "GET", "https://service.example/x", nil))
	if err != nil {
		t.Fatal(err)
	}
	if wantRead(t, res.Body, "service.example /api/x"); layered != 1 {
		t.Errorf("layers were made %d times", layered)
	}
	for name, err := range map[string]error{
		"no URL":    second(Endpoint("ftp://a")),
		"bad field": second(Endpoint("http://a", Config{BodyBuffer: -1})),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[A any](_ A, err error) error { return err }
