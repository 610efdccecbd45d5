package belfryhttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/load"
	"github.com/belfry-go/belfry/outlier"
)

// servers answers with the status that each index is to have.
func servers(t *testing.T, n int, answer func(i int, w http.ResponseWriter)) (urls []string, asked []*atomic.Int32) {
	t.Helper()
	for i := range n {
		count := new(atomic.Int32)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			count.Add(1)
			answer(i, w)
		}))
		t.Cleanup(s.Close)
		urls, asked = append(urls, s.URL), append(asked, count)
	}
	return urls, asked
}

func sends(t *testing.T, client http.RoundTripper) int {
	t.Helper()
	res, err := client.RoundTrip(newRequest(t, "GET", "http://x", nil))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	return res.StatusCode
}

// A server that answers 503 with Retry-After gets nothing until then.
func TestRetryAfterSteers(t *testing.T) {
	urls, asked := servers(t, 3, func(i int, w http.ResponseWriter) {
		if i == 0 {
			w.Header().Set("Retry-After", "20")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	b, err := Balance(discover.List(urls...), balance.Config{Load: load.Constant(nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	client := RoundTripper(b)
	for asked[0].Load() == 0 {
		sends(t, client)
	}
	for range 100 {
		if status := sends(t, client); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	if n := asked[0].Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	for _, ep := range b.Stats().Endpoints {
		if ep.Key == urls[0] && (len(ep.Ejected) != 1 || ep.Ejected[0] != eject.Overload || ep.Until > 20*time.Second) {
			t.Errorf("%+v", ep)
		}
	}
}

// However many servers fail, the guard rail leaves nine in ten of them in.
func TestGuardRailOverBreakers(t *testing.T) {
	urls, _ := servers(t, 10, func(i int, w http.ResponseWriter) {
		if i < 5 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b, err := Balance(discover.List(urls...), balance.Config{Load: load.Constant(nil)}, Config{Breaker: &breaker.Config{Consecutive: 2, MinBackoff: time.Hour, MaxBackoff: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	client := RoundTripper(b)
	for range 300 {
		sends(t, client)
	}
	if s := b.Stats().Guard; s.Out != 1 || s.Endpoints != 10 || s.Refused[eject.Breaker] == 0 {
		t.Errorf("%+v", s)
	}
}

func TestOutliersAreLeftAlone(t *testing.T) {
	var n atomic.Int32
	urls, asked := servers(t, 4, func(i int, w http.ResponseWriter) {
		if i == 2 && n.Add(1)%3 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b, err := Balance(discover.List(urls...), balance.Config{Load: load.Constant(nil)}, Config{Outlier: &outlier.Config{Interval: 50 * time.Millisecond, MinCalls: 20, MinEjection: time.Hour, MaxEjection: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	client := RoundTripper(b)
	for b.Stats().Guard.Out == 0 {
		sends(t, client)
	}
	before := asked[2].Load()
	for range 100 {
		if status := sends(t, client); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	if got := asked[2].Load(); got != before {
		t.Errorf("it was asked %d times", got-before)
	}
	if err := (Config{Outlier: &outlier.Config{Gap: 2}}).Validate(); err == nil {
		t.Error("a gap of 2 is accepted")
	}
}
