package belfryhttp

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/retry"
)

// fake answers without a network, with a body, like a transport that has nothing to do.
func fake(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: &counter{}, Request: req}, nil
}

func BenchmarkBareTransport(b *testing.B) {
	benchmark(b, func(req *http.Request) (*http.Response, error) { return fake(req) })
}

func BenchmarkLeaf(b *testing.B) {
	leaf := Transport(tripFunc(fake))
	benchmark(b, func(req *http.Request) (*http.Response, error) { return belfry.Do(req.Context(), leaf, req) })
}

func BenchmarkRoundTripperOverLeaf(b *testing.B) {
	benchmark(b, RoundTripper(Transport(tripFunc(fake))).RoundTrip)
}

func BenchmarkClientStack(b *testing.B) {
	svc, err := NewStack().
		LoadShed().
		Buffer(64).
		ConcurrencyLimit(500).
		Timeout(10 * time.Second).
		Retry(retry.Config{MaxAttempts: 3}).
		Build(fakeReplicas(b))
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, RoundTripper(svc).RoundTrip)
}

// fakeReplicas balances over three endpoints without a network.
func fakeReplicas(b testing.TB) *balance.Balancer[*http.Request, *http.Response] {
	replicas, err := Balance(discover.List("http://a", "http://b", "http://c"), balance.Config{}, Config{
		PerEndpoint: func(inner service) service {
			leaf := *inner.(*Leaf)
			leaf.rt, leaf.traced = tripFunc(fake), false
			return &leaf
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { replicas.Close() })
	r, err := belfry.Reserve[*http.Request, *http.Response](b.Context(), replicas)
	if err != nil {
		b.Fatal(err)
	}
	r.Release()
	return replicas
}

func benchmark(b *testing.B, send func(*http.Request) (*http.Response, error)) {
	req := newRequest(b, "GET", "http://svc/x", nil)
	b.ReportAllocs()
	for b.Loop() {
		res, err := send(req)
		if err != nil {
			b.Fatal(err)
		}
		res.Body.Close()
	}
}

func BenchmarkRoundTripperWithBody(b *testing.B) {
	for name, body := range map[string]func() (*http.Request, error){
		"GetBody": func() (*http.Request, error) { return http.NewRequest("PUT", "http://a", strings.NewReader("hello")) },
		"buffered": func() (*http.Request, error) {
			req, err := http.NewRequest("PUT", "http://a", strings.NewReader("hello"))
			req.GetBody = nil
			return req, err
		},
	} {
		b.Run(name, func(b *testing.B) {
			rt := RoundTripper(Transport(tripFunc(func(req *http.Request) (*http.Response, error) {
				var buf [64]byte
				for err := error(nil); err == nil; {
					_, err = req.Body.Read(buf[:])
				}
				req.Body.Close()
				return fake(req)
			})), Config{BodyBuffer: 1000})
			b.ReportAllocs()
			for b.Loop() {
				req, err := body()
				if err != nil {
					b.Fatal(err)
				}
				res, err := rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				res.Body.Close()
			}
		})
	}
}

func BenchmarkParseRetryAfter(b *testing.B) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, value := range map[string]string{"seconds": "120", "date": "Sun, 01 Mar 2026 12:00:30 GMT"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ParseRetryAfter(value, now)
			}
		})
	}
}
