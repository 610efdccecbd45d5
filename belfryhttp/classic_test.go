package belfryhttp_test

import (
	"bytes"
	"errors"
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
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/retry"
)

// classic is the client of the package documentation, over servers.
func classic(t testing.TB, cfg belfryhttp.Config, servers ...*httptest.Server) *http.Client {
	t.Helper()
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.URL)
	}
	replicas, err := belfryhttp.Balance(discover.List(addrs...), balance.Config{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { replicas.Close() })
	svc, err := belfryhttp.NewStack(cfg).
		LoadShed().
		Buffer(64).
		ConcurrencyLimit(500).
		Timeout(10 * time.Second).
		Retry(retry.Config{MaxAttempts: 3}).
		Build(replicas)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: belfryhttp.RoundTripper(svc, cfg)}
}

func TestClassicClient(t *testing.T) {
	t.Run("S7 three endpoints, limit 500, timeout 10 s, retry 3, buffer 64, balance: answers", func(t *testing.T) {
		var hits [3]atomic.Int32
		var servers []*httptest.Server
		for i := range hits {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				hits[i].Add(1)
				_, _ = io.Copy(w, r.Body)
			}))
			defer s.Close()
			servers = append(servers, s)
		}
		client := classic(t, belfryhttp.Config{}, servers...)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				for range 4 {
					res, err := client.Post("http://service/x", "text/plain", strings.NewReader("hello"))
					if err != nil {
						t.Error(err)
						return
					}
					got, err := io.ReadAll(res.Body)
					res.Body.Close()
					if err != nil || string(got) != "hello" || res.StatusCode != 200 {
						t.Errorf("%d %q, %v", res.StatusCode, got, err)
					}
				}
			})
		}
		wg.Wait()
		total := 0
		for i := range hits {
			n := int(hits[i].Load())
			total += n
			if n == 0 {
				t.Errorf("endpoint %d was never asked", i)
			}
		}
		if total != 200 {
			t.Errorf("%d requests for 200 calls", total)
		}
	})
	t.Run("S7 an endpoint that fails is tried around", func(t *testing.T) {
		good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
		defer good.Close()
		bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			http.Error(w, strings.Repeat("no ", 1000), http.StatusServiceUnavailable)
		}))
		defer bad.Close()
		client := classic(t, belfryhttp.Config{}, good, bad)
		for range 20 {
			req, err := http.NewRequestWithContext(t.Context(), "PUT", "http://service/x", strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			res, err := client.Do(req)
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%v, %v", res, err)
			}
			res.Body.Close()
		}
	})
	t.Run("512 KiB over TLS and HTTP/2", func(t *testing.T) {
		big := bytes.Repeat([]byte("belfry"), 512<<10/6)
		var tries atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || r.ProtoMajor != 2 {
				t.Errorf("%s, %v", r.Proto, err)
			}
			if tries.Add(1) == 1 {
				w.WriteHeader(502)
			}
			_, _ = w.Write(body)
		}))
		server.EnableHTTP2 = true
		server.StartTLS()
		defer server.Close()
		client := classic(t, belfryhttp.Config{BodyBuffer: 1 << 20, Transport: server.Client().Transport.(*http.Transport)}, server)
		req, err := http.NewRequestWithContext(t.Context(), "PUT", "https://service/x", io.NopCloser(bytes.NewReader(big)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if got, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(got, big) || res.StatusCode != 200 {
			t.Errorf("%d, %d bytes of %d, %v", res.StatusCode, len(got), len(big), err)
		}
	})
}

func TestNewStackReportsAConfigThatIsNotValid(t *testing.T) {
	_, err := belfryhttp.NewStack(belfryhttp.Config{BodyBuffer: -1}).LoadShed().Build(belfryhttp.Transport(nil))
	if err == nil || !strings.Contains(err.Error(), "BodyBuffer must not be below 0, got -1") {
		t.Errorf("got %v", err)
	}
}

func TestNewStackKnowsHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer server.Close()
	leaf := belfryhttp.Transport(nil)
	defer leaf.Close()
	svc, err := belfryhttp.NewStack().LoadShed().ConcurrencyLimit(1).Build(leaf)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: belfryhttp.RoundTripper(svc)}
	res, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(server.URL); !errors.Is(err, belfry.ErrNotReady) {
		t.Errorf("a second call while the first one's body is unread: %v", err)
	}
	res.Body.Close()
	if res, err = client.Get(server.URL); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
}
