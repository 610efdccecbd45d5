package proxy

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/histogram"
)

// BenchmarkProxy compares the proxy with a bare reverse proxy that takes its three servers in turn, over real connections. Client,
// proxy and servers share the process, so allocations and time are those of all of them: what counts is the difference.
//
//	go test -run "^$" -bench Proxy -benchtime 5s ./internal/proxy
//
// Sixteen clients for each core. On an otherwise idle machine req/s is what the machine can do.
func BenchmarkProxy(b *testing.B) {
	var targets []string
	for range 3 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "hello, world\n")
		}))
		defer s.Close()
		targets = append(targets, s.URL)
	}
	b.Run("bare", func(b *testing.B) { measure(b, bare(b, targets)) })
	b.Run("belfry", func(b *testing.B) {
		cfg := Defaults()
		cfg.Targets = targets
		up, err := newUpstream(cfg, hooks{events: newEvents(slog.New(slog.DiscardHandler))})
		if err != nil {
			b.Fatal(err)
		}
		defer up.Close()
		measure(b, newHandler(up, cfg, slog.New(slog.DiscardHandler), func(Record) {}))
	})
}

// bare is a reverse proxy without belfry.
func bare(b *testing.B, targets []string) http.Handler {
	var urls []*url.URL
	for _, target := range targets {
		u, err := url.Parse(target)
		if err != nil {
			b.Fatal(err)
		}
		urls = append(urls, u)
	}
	transport := (&recipe{}).transport("http", 256)
	b.Cleanup(transport.CloseIdleConnections)
	var turn atomic.Uint64
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetXForwarded()
			target := urls[turn.Add(1)%uint64(len(urls))]
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		},
		Transport:     transport,
		FlushInterval: -1,
		BufferPool:    newBufferPool(),
	}
}

// measure sends requests through handler from clients of which each waits for its answer.
func measure(b *testing.B, handler http.Handler) {
	front := httptest.NewServer(handler)
	defer front.Close()
	transport := (&recipe{}).transport("http", 1024)
	defer transport.CloseIdleConnections()
	var latency histogram.Histogram
	var failed atomic.Int64
	b.SetParallelism(16)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			start := time.Now()
			if !get(b, transport, front.URL) {
				failed.Add(1)
			}
			latency.Record(time.Since(start))
		}
	})
	b.StopTimer()
	if n := failed.Load(); n > 0 {
		b.Fatalf("%d of %d requests failed", n, b.N)
	}
	p99, _ := latency.Quantile(0.99)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
}

func get(b *testing.B, client http.RoundTripper, to string) bool {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, to, http.NoBody)
	if err != nil {
		return false
	}
	res, err := client.RoundTrip(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err == nil && res.StatusCode == http.StatusOK
}
