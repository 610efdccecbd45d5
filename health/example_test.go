package health_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/health"
)

// An endpoint that goes down and comes back. For HTTP the probe would be a GET of a path such as /healthz.
func Example() {
	var down atomic.Bool
	down.Store(true)
	probe := func(context.Context) error {
		if down.Load() {
			return errors.New("connection refused")
		}
		return nil
	}
	changes := make(chan health.Stats)
	svc := health.New(belfry.Of(echo), probe, health.Config{
		Interval: 10 * time.Millisecond, // seconds, outside of examples
		OnChange: func(s health.Stats) { changes <- s },
	})
	defer svc.Close()

	s := <-changes
	fmt.Println("healthy:", s.Healthy, "after", s.Failures, "failures, the last one:", s.LastError)
	_, err := belfry.Do(context.Background(), svc, 1)
	fmt.Println("refused:", errors.Is(err, belfry.ErrNotReady))

	down.Store(false)
	s = <-changes
	fmt.Println("healthy:", s.Healthy)
	fmt.Println(belfry.Do(context.Background(), svc, 1))
	// Output:
	// healthy: false after 3 failures, the last one: connection refused
	// refused: true
	// healthy: true
	// 1 <nil>
}
