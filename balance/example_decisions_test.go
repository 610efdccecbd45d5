package balance_test

import (
	"context"
	"fmt"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// The latest choices say why an endpoint was not chosen: here because it had two requests already.
func ExampleBalancer_Decisions() {
	dial := func(context.Context, string, string) (belfry.Service[string, string], error) {
		return belfry.Of(func(_ context.Context, name string) (string, error) { return "hello " + name, nil }), nil
	}
	known := make(chan struct{}, 2)
	cfg := balance.Config{Load: load.Pending{}, Decisions: 100, OnEvent: func(e balance.Event) {
		if e.Kind == balance.EndpointReady {
			known <- struct{}{}
		}
	}}
	replicas, err := balance.New(discover.List("a:8080", "b:8080"), dial, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()

	<-known
	<-known
	ctx := context.Background()
	for range 3 { // two here, one there
		if _, err := replicas.Acquire(ctx); err != nil {
			fmt.Println(err)
		}
	}
	_, _ = belfry.Do(ctx, replicas, "world")

	all := replicas.Decisions()
	last := all[len(all)-1]
	for _, c := range last.Candidates {
		fmt.Println(c.Held, "held:", c.Answer)
	}
	fmt.Println("it ended:", last.Ended)
	// Output:
	// 1 held: granted
	// 2 held: not asked
	// it ended: success
}
