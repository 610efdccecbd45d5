package balance_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/load"
	"github.com/belfry-go/belfry/retry"
)

// addresses is three endpoints that answer with their address. Each takes one call at a time.
func addresses(cfg balance.Config, targets ...string) (*balance.Balancer[int, string], error) {
	source, err := discover.Parse(context.Background(), targets, discover.Config{})
	if err != nil {
		return nil, err
	}
	dial := func(_ context.Context, _, addr string) (belfry.Service[int, string], error) {
		return limit.NewConcurrency(belfry.Of(func(context.Context, int) (string, error) { return addr, nil }), limit.NewLimiter(1)), nil
	}
	b, err := balance.New(source, dial, cfg)
	for err == nil && !allReady(b.Stats()) {
		runtime.Gosched()
	}
	return b, err
}

// Calls stay in the zone of the caller, and go to another one when that has no room.
func ExampleConfig_zone() {
	replicas, err := addresses(balance.Config{Load: load.Pending{}, Zone: "eu-1"}, "a:80 zone=eu-1", "b:80 zone=eu-1", "far:80 zone=us-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()
	for range 3 {
		r, err := belfry.Reserve(context.Background(), replicas)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer r.Release()
		for _, ep := range replicas.Stats().Endpoints {
			if ep.Key == "far:80" {
				fmt.Println("far away:", ep.Reserved)
			}
		}
	}
	// Output:
	// far away: 0
	// far away: 0
	// far away: 1
}

// The spare endpoint gets nothing while the others are ready, and three in ten calls when only half of them are: those that are left get 1.4 times
// their share at most.
func ExampleNew_priorities() {
	replicas, err := addresses(balance.Config{Load: load.Constant(nil)}, "a:80", "b:80", "spare:80 priority=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()
	tenths := func() float64 {
		n := 0.0
		for range 10_000 {
			if addr, _ := belfry.Do(context.Background(), replicas, 1); addr == "spare:80" {
				n++
			}
		}
		return math.Round(n / 1000)
	}
	fmt.Println("both are ready:", tenths(), "of 10 calls")

	r, err := belfry.Reserve(context.Background(), replicas) // one of them has no more room
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Release()
	fmt.Println("one of two is:", tenths(), "of 10 calls")
	// Output:
	// both are ready: 0 of 10 calls
	// one of two is: 3 of 10 calls
}

// A zone is lost. Second attempts go to another one, and none fails.
func ExampleNew_attempts() {
	source, err := discover.Parse(context.Background(), []string{"a:80 zone=eu-1", "b:80 zone=eu-1", "c:80 zone=eu-2"}, discover.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	dial := func(_ context.Context, _, addr string) (belfry.Service[int, string], error) {
		return belfry.Of(func(context.Context, int) (string, error) {
			if addr != "c:80" {
				return "", errors.New("power failure")
			}
			return addr, nil
		}), nil
	}
	replicas, err := balance.New(source, dial, balance.Config{Load: load.Pending{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()
	for !allReady(replicas.Stats()) {
		runtime.Gosched()
	}
	svc := retry.New(replicas, retry.Config{MaxAttempts: 2, Backoff: retry.Backoff{Min: time.Millisecond}})
	failed := 0
	for n := range 40 {
		if _, err := belfry.Do(context.Background(), svc, n); err != nil {
			failed++
		}
	}
	fmt.Println("tried again:", svc.Stats().Retries > 0, "failed:", failed)
	// Output: tried again: true failed: 0
}

// An endpoint that says for how long it is overloaded gets no more calls until then.
func ExampleConfig_maxRetryAfter() {
	overloaded, calls := errors.New("overloaded"), 0
	dial := func(_ context.Context, _, addr string) (belfry.Service[int, string], error) {
		return belfry.Of(func(context.Context, int) (string, error) {
			if addr == "a:80" {
				calls++
				return "", overloaded
			}
			return addr, nil
		}), nil
	}
	sem := belfry.Semantics[int, string]{Classify: func(_ string, err error) belfry.Outcome {
		if errors.Is(err, overloaded) {
			return belfry.Outcome{Kind: belfry.Failure, RetryAfter: time.Minute} // as HTTP's Retry-After
		}
		return belfry.Outcome{}
	}}
	replicas, err := balance.New(discover.List("a:80", "b:80", "c:80"), dial, balance.Config{Load: load.Pending{}, MaxRetryAfter: 30 * time.Second}, sem)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()
	for !allReady(replicas.Stats()) {
		runtime.Gosched()
	}
	for n := range 100 {
		_, _ = belfry.Do(context.Background(), replicas, n)
	}
	fmt.Println("calls that it got:", calls)
	for _, ep := range replicas.Stats().Endpoints {
		if ep.Key == "a:80" {
			fmt.Println("left alone because of", ep.Ejected, "for half a minute at most:", ep.Until <= 30*time.Second)
		}
	}
	// Output:
	// calls that it got: 1
	// left alone because of [overload] for half a minute at most: true
}
