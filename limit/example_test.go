package limit_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

func ExampleNewConcurrency() {
	limiter := limit.NewLimiter(1)
	svc := limit.NewConcurrency(belfry.Of(func(_ context.Context, name string) (string, error) {
		return "hello, " + name, nil
	}), limiter)

	// Whoever holds room takes a place that others wait for, or are refused.
	ctx := context.Background()
	r, _ := belfry.Reserve(ctx, svc)
	_, err := belfry.TryDo(ctx, svc, "Grace")
	fmt.Println(err)

	fmt.Println(r.Call(ctx, "Ada"))
	fmt.Println(belfry.TryDo(ctx, svc, "Grace"))
	fmt.Printf("%+v\n", limiter.Stats())
	// Output:
	// limit: full (1 of 1 in flight): belfry: not ready
	// hello, Ada <nil>
	// hello, Grace <nil>
	// {Limit:1 InFlight:0 Reserved:0 Waiting:0 Admitted:2 Rejected:1 Cancelled:0}
}

func ExampleLimiter_Resize() {
	limiter := limit.NewLimiter(0) // nobody, until it is known how many
	fmt.Println(limiter.Resize(64))
	fmt.Println(limiter.Resize(-1))
	fmt.Println(limiter.Stats().Limit)
	// Output:
	// <nil>
	// limit: concurrency must be at least 0, got -1
	// 64
}

func ExampleNewRate() {
	limiter := limit.NewRateLimiter(10, time.Hour, limit.RateConfig{Burst: 2})
	svc := limit.NewRate(belfry.Of(func(_ context.Context, name string) (string, error) {
		return "hello, " + name, nil
	}), limiter)

	ctx := context.Background()
	fmt.Println(belfry.TryDo(ctx, svc, "Ada"))

	// A reservation takes a token, and gives it back if it comes to nothing.
	r, _ := belfry.Reserve(ctx, svc)
	_, err := belfry.TryDo(ctx, svc, "Grace")
	fmt.Println("in", belfry.RetryAfter(err).Round(time.Minute))
	r.Release()
	fmt.Println(belfry.TryDo(ctx, svc, "Grace"))
	fmt.Println("free:", limiter.Stats().Free)
	// Output:
	// hello, Ada <nil>
	// in 6m0s
	// hello, Grace <nil>
	// free: 0
}

func ExampleNewRatePerKey() {
	type order struct{ customer, item string }
	limiter := limit.NewKeyedLimiter[string](1, time.Minute, limit.KeyedConfig{MaxKeys: 10_000})
	svc := limit.NewRatePerKey(belfry.Of(func(_ context.Context, o order) (string, error) {
		return o.item + " for " + o.customer, nil
	}), limiter, func(o order) string { return o.customer })

	ctx := context.Background()
	fmt.Println(belfry.Do(ctx, svc, order{"Ada", "tea"}))
	fmt.Println(belfry.Do(ctx, svc, order{"Grace", "tea"}))
	_, err := belfry.Do(ctx, svc, order{"Ada", "cake"})
	fmt.Println("Ada again in", belfry.RetryAfter(err).Round(time.Minute))
	// Output:
	// tea for Ada <nil>
	// tea for Grace <nil>
	// Ada again in 1m0s
}

func ExampleNewAdaptive() {
	limiter := limit.NewAdaptiveLimiter(limit.AdaptiveConfig{Max: 500})
	svc := limit.NewAdaptive(belfry.Of(func(_ context.Context, name string) (string, error) {
		return "hello, " + name, nil
	}), limiter)
	fmt.Println(belfry.Do(context.Background(), svc, "Ada"))
	fmt.Println("begins with", limiter.Stats().Limit)
	// Output:
	// hello, Ada <nil>
	// begins with 4
}
