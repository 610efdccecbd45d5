package balance_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// Calls go to the better of two replicas that are drawn at random.
func Example() {
	dial := func(_ context.Context, _, addr string) (belfry.Service[string, string], error) {
		return belfry.Of(func(_ context.Context, name string) (string, error) {
			return "hello " + name, nil // asks addr, in real life
		}), nil
	}
	replicas, err := balance.New(discover.List("a:8080", "b:8080", "c:8080"), dial, balance.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()

	res, err := belfry.Do(context.Background(), replicas, "world")
	fmt.Println(res, err)
	// Output: hello world <nil>
}

// When there is nobody to ask, the error says what became of everybody.
func ExampleNoEndpointsError() {
	dial := func(_ context.Context, _, addr string) (belfry.Service[string, string], error) {
		return nil, errors.New("connection refused")
	}
	replicas, err := balance.New(discover.List("a:8080"), dial, balance.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = belfry.Do(ctx, replicas, "anybody?")
	if none, ok := errors.AsType[*balance.NoEndpointsError](err); ok {
		for _, ep := range none.Endpoints {
			fmt.Println(ep.Key, ep.State, ep.Err)
		}
	}
	fmt.Println(errors.Is(err, belfry.ErrRejected), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// a:8080 backing off connection refused
	// true true
}

// Stats are for dashboards.
func ExampleBalancer_Stats() {
	up := make(chan struct{})
	cfg := balance.Config{
		Load: load.Pending{},
		OnEvent: func(e balance.Event) {
			if e.Kind == balance.EndpointReady {
				close(up)
			}
		},
	}
	dial := func(context.Context, string, string) (belfry.Service[int, int], error) {
		return belfry.Of(func(_ context.Context, n int) (int, error) { return n, nil }), nil
	}
	replicas, err := balance.New(discover.List("a:8080"), dial, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()
	<-up

	permit, _ := replicas.Acquire(context.Background())
	for _, ep := range replicas.Stats().Endpoints {
		fmt.Println(ep.Key, "reserved", ep.Reserved, "in flight", ep.InFlight, "cost", ep.Cost)
	}
	replicas.Release(permit)
	// Output: a:8080 reserved 1 in flight 0 cost 1
}

// Two in a hundred calls go to the new version, and none to the other region as long as these two are ready.
func ExampleNew_weights() {
	source, err := discover.Parse(context.Background(), []string{
		"old:8080 weight=98 zone=eu-1",
		"new:8080 weight=2 zone=eu-1",
		"far:8080 zone=us-1 priority=1",
	}, discover.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var mu sync.Mutex
	calls := map[string]int{}
	dial := func(_ context.Context, _, addr string) (belfry.Service[int, int], error) {
		return belfry.Of(func(_ context.Context, n int) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			calls[addr]++
			return n, nil
		}), nil
	}
	replicas, err := balance.New(source, dial, balance.Config{Load: load.Pending{}, Zone: "eu-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()
	for replicas.Stats().Endpoints == nil || !allReady(replicas.Stats()) {
		runtime.Gosched()
	}
	for n := range 10_000 {
		if _, err := belfry.Do(context.Background(), replicas, n); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(calls["new:8080"] > 100, calls["new:8080"] < 300, calls["far:8080"])
	// Output: true true 0
}

func allReady(s balance.Stats) bool {
	for _, ep := range s.Endpoints {
		if ep.State != balance.Ready {
			return false
		}
	}
	return len(s.Endpoints) == 3
}
