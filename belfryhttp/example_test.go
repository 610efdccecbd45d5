package belfryhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/retry"
)

// A client over three replicas: better of two ready ones, retries that cannot storm, bounded waiting.
func Example() {
	replica := func() *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "hello from", r.URL.Path)
		}))
	}
	a, b, c := replica(), replica(), replica()
	defer a.Close()
	defer b.Close()
	defer c.Close()

	replicas, err := belfryhttp.Balance(discover.List(a.URL, b.URL, c.URL), balance.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()
	svc, err := belfryhttp.NewStack().
		LoadShed().
		Buffer(64).
		ConcurrencyLimit(500).
		Timeout(10 * time.Second).
		Retry(retry.Config{MaxAttempts: 3}).
		Build(replicas)
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: belfryhttp.RoundTripper(svc)}

	res, err := client.Get("http://service/greeting")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	fmt.Printf("%s: %s", res.Status, body)
	// Output: 200 OK: hello from /greeting
}

// A server says in so many words why it could not answer.
func ExampleWriteError() {
	full := &belfry.Rejection{Layer: "limit", Reason: "full", RetryAfter: 1500 * time.Millisecond, Err: belfry.ErrNotReady}
	w := httptest.NewRecorder()
	belfryhttp.WriteError(w, full)
	res := w.Result()
	fmt.Println(res.StatusCode, res.Header.Get("Retry-After"), res.Header.Get("X-Belfry-Reason"))
	// Output: 503 2 limit: full
}

// A request that was refused was not sent, and may be sent elsewhere.
func ExampleRoundTripper() {
	svc, err := belfryhttp.NewStack().LoadShed().ConcurrencyLimit(0).Build(belfryhttp.Transport(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: belfryhttp.RoundTripper(svc)}
	_, err = client.Get("http://service/")
	fmt.Println(errors.Is(err, belfry.ErrRejected))
	// Output: true
}
