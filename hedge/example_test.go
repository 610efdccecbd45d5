package hedge_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/hedge"
)

func ExampleNew() {
	var sent atomic.Int32
	replicas := belfry.Of(func(ctx context.Context, name string) (string, error) {
		if sent.Add(1) == 1 { // the one that is asked first is stuck
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "hello " + name, nil
	})
	svc := hedge.New(replicas, hedge.Config{Delay: 5 * time.Millisecond})

	res, err := belfry.Do(context.Background(), svc, "world")
	fmt.Println(res, err)
	fmt.Println("hedges:", svc.Stats().Hedges, "won:", svc.Stats().Won)
	// Output:
	// hello world <nil>
	// hedges: 1 won: 1
}
