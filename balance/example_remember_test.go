package balance_test

import (
	"context"
	"fmt"
	"runtime"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// A name server leaves an address out of one answer, and names it in the next. The endpoint is dialled anew, and what is known of it is not lost.
func ExampleConfig_remember() {
	answers := make(chan discover.Change)
	defer close(answers)
	source := func(yield func(discover.Change, error) bool) {
		for change := range answers {
			if !yield(change, nil) {
				return
			}
		}
	}
	dial := func(context.Context, string, string) (belfry.Service[int, int], error) {
		return belfry.Of(func(_ context.Context, n int) (int, error) { return n, nil }), nil
	}
	replicas, err := balance.New(source, dial, balance.Config{Load: load.Expected{}, AllowEmpty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()

	for _, addr := range []string{"10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"} {
		answers <- discover.Insert(addr)
	}
	for !allReady(replicas.Stats()) {
		runtime.Gosched()
	}
	answers <- discover.Remove("10.0.0.2:8080")
	answers <- discover.Insert("10.0.0.1:8080") // says nothing new: what came before it is done
	fmt.Println("remembered while it is away:", replicas.Stats().Remembered)

	answers <- discover.Insert("10.0.0.2:8080")
	for !allReady(replicas.Stats()) {
		runtime.Gosched()
	}
	fmt.Println("remembered when it is back:", replicas.Stats().Remembered)
	// Output:
	// remembered while it is away: 1
	// remembered when it is back: 0
}
