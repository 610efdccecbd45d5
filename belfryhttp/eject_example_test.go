package belfryhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/outlier"
)

// All servers fail, and one of three is left alone: of so many a third may be, whatever finds that it fails.
func ExampleBalance_guardRail() {
	var urls []string
	for range 3 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
		defer s.Close()
		urls = append(urls, s.URL)
	}
	replicas, err := belfryhttp.Balance(discover.List(urls...),
		balance.Config{Eject: eject.Config{MaxShare: 0.34}},
		belfryhttp.Config{
			Breaker: &breaker.Config{},           // who fails five times in a row
			Outlier: &outlier.Config{Latency: 3}, // who fails more than the others, or takes three times as long
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()
	client := &http.Client{Transport: belfryhttp.RoundTripper(replicas)}
	for range 60 {
		res, err := client.Get("http://replicas")
		if err != nil {
			fmt.Println(err)
			return
		}
		res.Body.Close()
	}
	guard := replicas.Stats().Guard
	fmt.Println(guard.Out, "of", guard.Endpoints, "is left alone; more would be:", guard.Refused[eject.Breaker] > 0)
	// Output: 1 of 3 is left alone; more would be: true
}
