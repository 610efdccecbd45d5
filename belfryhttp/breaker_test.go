package belfryhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// An endpoint that answers 503 opens its own breaker, for as long as its Retry-After says; the other gets everything then.
func TestBalanceWithABreakerForEachEndpoint(t *testing.T) {
	var ill, well atomic.Int32
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		ill.Add(1)
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer bad.Close()
	good := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { well.Add(1) }))
	defer good.Close()
	changes := make(chan breaker.Change, 10)
	b, err := Balance(discover.List(bad.URL, good.URL), balance.Config{Load: load.Constant(nil), MaxRetryAfter: -1}, Config{Breaker: &breaker.Config{
		Consecutive: 2, MaxRetryAfter: time.Hour, OnChange: func(c breaker.Change) { changes <- c },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	client := RoundTripper(b)
	do := func() int {
		res, err := client.RoundTrip(newRequest(t, "GET", "http://x", nil))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res.StatusCode
	}
	for ill.Load() < 2 {
		if status := do(); (status == http.StatusOK) != (status != http.StatusServiceUnavailable) {
			t.Fatalf("status %d", status)
		}
	}
	c := <-changes
	if pause := c.NextProbe.Sub(c.At); c.To != breaker.Open || pause != 10*time.Minute {
		t.Errorf("%+v, for %v, want ten minutes", c, pause)
	}
	before := well.Load()
	for range 200 {
		if status := do(); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	if ill.Load() != 2 || well.Load() != before+200 {
		t.Errorf("%d went to the one that is ill, %d to the other", ill.Load()-2, well.Load()-before)
	}
}

func TestEndpointWithABreaker(t *testing.T) {
	var order []string
	svc, err := Endpoint("http://"+deadAddr(t), Config{
		Breaker: &breaker.Config{Consecutive: 1},
		PerEndpoint: func(inner service) service {
			return seen(inner, &order)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer svc.(io.Closer).Close()
	client := RoundTripper(svc)
	// A failed dial is not sent, and yet a failure.
	if _, err := client.RoundTrip(newRequest(t, "GET", "http://x", nil)); err == nil {
		t.Fatal("somebody is there")
	}
	_, err = client.RoundTrip(newRequest(t, "GET", "http://x", nil))
	if r, ok := errors.AsType[*belfry.Rejection](err); !ok || r.Layer != "breaker" {
		t.Errorf("got %v, want a refusal of the breaker", err)
	}
	if len(order) != 1 {
		t.Errorf("the layer of PerEndpoint saw %d calls, want the first", len(order))
	}
	status, _, retryAfter := Status(err)
	if status != http.StatusServiceUnavailable || retryAfter <= 0 {
		t.Errorf("a caller is answered %d, retry after %v", status, retryAfter)
	}
	if err := (Config{Breaker: &breaker.Config{Ratio: 2}}).Validate(); err == nil || !strings.Contains(err.Error(), "Breaker: breaker: ratio must be within 0 and 1") {
		t.Errorf("got %v", err)
	}
}

// seen returns inner, and notes the requests that pass.
func seen(inner service, all *[]string) service {
	return belfry.Around(inner, func(ctx context.Context, req *http.Request, next *belfry.Next[*http.Request, *http.Response]) (*http.Response, error) {
		*all = append(*all, req.URL.String())
		return next.Call(ctx, req)
	})
}
