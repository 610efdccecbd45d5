package belfryhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// Servers that say how busy they are, and a client that listens and asks.
func ExampleReportLoad() {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	a := httptest.NewServer(belfryhttp.ReportLoad(handler))
	defer a.Close()
	b := httptest.NewServer(belfryhttp.ReportLoad(handler))
	defer b.Close()

	replicas, err := belfryhttp.Balance(discover.List(a.URL, b.URL),
		balance.Config{Load: load.Probing{}},
		belfryhttp.Config{ProbePath: belfryhttp.DefaultProbePath})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()
	client := &http.Client{Transport: belfryhttp.RoundTripper(replicas)}
	res, err := client.Get("http://replicas/greeting")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	fmt.Println(res.Status, "from a server with", res.Header.Get(belfryhttp.LoadHeader), "request in flight")
	// Output: 200 OK from a server with 1 request in flight
}

func ExampleParseLoad() {
	header := http.Header{}
	header.Set(belfryhttp.ORCAHeader, "TEXT cpu_utilization=0.75,mem_utilization=0.2")
	report, said := belfryhttp.ParseLoad(header)
	fmt.Println(said, report.InFlight)
	// Output: true 3
}
