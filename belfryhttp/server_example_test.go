package belfryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfryhttp"
)

// A server that says 503 with Retry-After instead of collapsing.
func ExampleNewServerStack() {
	mux := http.NewServeMux()
	mux.HandleFunc("/greeting", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })

	stack := belfryhttp.NewServerStack().LoadShed().Buffer(500).ConcurrencyLimit(50).Timeout(2 * time.Second)
	fmt.Println(stack)
	h, err := stack.Handler(mux)
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(h)
	defer server.Close()

	res, err := http.Get(server.URL + "/greeting")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	fmt.Printf("%s: %s", res.Status, body)
	// Output:
	// load shed → buffer(500, FIFO) → concurrency limit(50) → timeout(2s)
	// 200 OK: hello
}

// What is too much is refused at once, and the client is told when to come back.
func ExampleServerStack_LoadShed() {
	busy := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	h, err := belfryhttp.NewServerStack().LoadShed().ConcurrencyLimit(0).Handler(busy)
	if err != nil {
		fmt.Println(err)
		return
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code, w.Header().Get("Retry-After"), w.Header().Get("X-Belfry-Reason"))
	// Output: 503 1 limit: full
}

// At the deadline the client is answered; the handler hears of it, and can write no more.
func ExampleServerStack_Timeout() {
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		_, err := io.WriteString(w, "sorry")
		fmt.Println(errors.Is(err, http.ErrHandlerTimeout))
	})
	h, err := belfryhttp.NewServerStack().Timeout(10 * time.Millisecond).Handler(slow)
	if err != nil {
		fmt.Println(err)
		return
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Body)
	// Output:
	// true
	// 504 Gateway Timeout: deadline
}

// A layer of one's own sees the request, the answer's status and the pattern that a ServeMux has found.
func ExampleServerStack_Layer() {
	log := func(inner belfry.Service[belfryhttp.Exchange, belfryhttp.Exchange]) belfry.Service[belfryhttp.Exchange, belfryhttp.Exchange] {
		return belfry.Around(inner, func(ctx context.Context, x belfryhttp.Exchange, next *belfry.Next[belfryhttp.Exchange, belfryhttp.Exchange]) (belfryhttp.Exchange, error) {
			res, err := next.Call(ctx, x)
			if err == nil {
				fmt.Println(res.Request().Pattern, res.Status())
			}
			return res, err
		})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /teapots/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h, err := belfryhttp.NewServerStack().ConcurrencyLimit(50).Layer("log", log).Handler(mux)
	if err != nil {
		fmt.Println(err)
		return
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/teapots/7", nil))
	// Output: GET /teapots/{id} 418
}
