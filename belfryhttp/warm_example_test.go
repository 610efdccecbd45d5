package belfryhttp_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/discover"
)

// The first requests do not wait for connections: when the endpoint is ready, three are there.
func ExampleConfig_warm() {
	var opened atomic.Int32
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	transport := belfryhttp.NewTransport(0)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		opened.Add(1)
		return dial(ctx, network, addr)
	}

	replicas, err := belfryhttp.Balance(discover.List(server.URL), balance.Config{}, belfryhttp.Config{Warm: 3, Transport: transport})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()
	room, err := belfry.Reserve(context.Background(), replicas)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer room.Release()
	fmt.Println("ready, with", opened.Load(), "connections")
	// Output: ready, with 3 connections
}
