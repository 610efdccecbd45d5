package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
)

// A service that goes down and comes back. Behind a balancer, each endpoint gets a breaker of its own.
func Example() {
	down := true
	svc := breaker.New(belfry.Of(func(_ context.Context, n int) (int, error) {
		if down {
			return 0, errors.New("connection refused")
		}
		return n, nil
	}), breaker.Config{
		Consecutive: 3,
		MinBackoff:  time.Millisecond, // a second, outside of examples
	})
	ctx := context.Background()
	for range 3 {
		_, _ = belfry.Do(ctx, svc, 1)
	}
	s := svc.Stats()
	fmt.Println(s.State, "after", s.Failures, "failures, the last one:", s.LastError)

	down = false
	_, err := belfry.Do(ctx, svc, 1)
	for errors.Is(err, belfry.ErrNotReady) { // Config.Wait does this by itself
		<-time.After(belfry.RetryAfter(err))
		_, err = belfry.Do(ctx, svc, 1)
	}
	fmt.Println(svc.Stats().State, "again:", err)
	// Output:
	// open after 3 failures, the last one: connection refused
	// closed again: <nil>
}
