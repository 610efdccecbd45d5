//go:build !race

package belfryhttp

import (
	"net/http"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/retry"
)

// The package documents no number; these keep it from growing unnoticed.
func TestAllocsOfACall(t *testing.T) {
	svc, err := NewStack().
		LoadShed().
		Buffer(64).
		ConcurrencyLimit(500).
		Timeout(10 * time.Second).
		Retry(retry.Config{MaxAttempts: 3}).
		Build(fakeReplicas(t))
	if err != nil {
		t.Fatal(err)
	}
	leaf := Transport(tripFunc(fake))
	req := newRequest(t, "GET", "http://svc/x", nil)
	bare := allocs(t, func() (*http.Response, error) { return fake(req) })
	for _, c := range []struct {
		name string
		call func() (*http.Response, error)
		most float64 // on top of the bare transport
	}{
		{"leaf", func() (*http.Response, error) { return belfry.Do(t.Context(), leaf, req) }, 5},
		{"RoundTripper over a leaf", func() (*http.Response, error) { return RoundTripper(leaf).RoundTrip(req) }, 7},
		{"client stack", func() (*http.Response, error) { return RoundTripper(svc).RoundTrip(req) }, 15},
	} {
		if got := allocs(t, c.call) - bare; got > c.most {
			t.Errorf("%s: %v allocations on top of the transport's %v, want at most %v", c.name, got, bare, c.most)
		}
	}
}

func allocs(t *testing.T, call func() (*http.Response, error)) float64 {
	return testing.AllocsPerRun(200, func() {
		res, err := call()
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	})
}
