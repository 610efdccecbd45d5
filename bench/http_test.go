package bench

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/retry"
)

// fake answers without a network.
type fake struct{}

func (fake) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("hello")), Request: req}, nil
}

// httpClient is the client of the README, over addrs.
func httpClient(tb testing.TB, addrs []string, cfg belfryhttp.Config) *http.Client {
	tb.Helper()
	replicas, err := belfryhttp.Balance(discover.List(addrs...), balance.Config{}, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { replicas.Close() })
	svc, err := belfryhttp.NewStack().
		LoadShed().
		Buffer(callers).
		ConcurrencyLimit(500).
		Timeout(10 * time.Second).
		Retry(retry.Config{MaxAttempts: 3}).
		Build(replicas)
	if err != nil {
		tb.Fatal(err)
	}
	return &http.Client{Transport: belfryhttp.RoundTripper(svc)}
}

// BenchmarkHTTP is a whole client: over a transport that answers by itself, and over loopback, with three servers. Over the first
// belfry does not rewrite the request's address, which its own transports do.
func BenchmarkHTTP(b *testing.B) {
	bare := &http.Client{Transport: fake{}}
	faked := httpClient(b, []string{"http://a", "http://b", "http://c"}, belfryhttp.Config{
		PerEndpoint: func(belfry.Service[*http.Request, *http.Response]) belfry.Service[*http.Request, *http.Response] {
			return belfryhttp.Transport(fake{})
		},
	})
	fakes := []contender{get("http-client", bare, "http://a/"), get("belfry", faked, "http://a/")}
	compare(b, "fake", fakes...)
	for _, c := range fakes { // apart from that, because to look at the clock for each takes about as long as one does
		b.Run("fake,each/serial/"+c.name, func(b *testing.B) { percentiles(b, c) })
	}

	var addrs []string
	for range 3 {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "hello")
		}))
		b.Cleanup(server.Close)
		addrs = append(addrs, server.URL)
	}
	plain := belfryhttp.NewTransport(2 * callers)
	b.Cleanup(plain.CloseIdleConnections)
	overLoopback := &http.Client{Transport: plain}
	for _, c := range []contender{
		get("http-client", overLoopback, addrs[0]),
		get("belfry", httpClient(b, addrs, belfryhttp.Config{}), "http://svc"),
	} {
		b.Run("loopback/serial/"+c.name, func(b *testing.B) { percentiles(b, c) })
		b.Run("loopback/parallel/"+c.name, func(b *testing.B) { parallel(b, true, c.do) })
	}
}

func get(name string, client *http.Client, url string) contender {
	return contender{name, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}}
}

// percentiles is serial, with how long the slow ones take.
func percentiles(b *testing.B, c contender) {
	var took []time.Duration
	warm(c.do)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		if err := c.do(context.Background()); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
}
