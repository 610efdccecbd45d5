package belfry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/belfry-go/belfry"
)

func Example() {
	upper := belfry.Of(func(_ context.Context, s string) (string, error) {
		return strings.ToUpper(s), nil
	})
	res, err := belfry.Do(context.Background(), upper, "ding")
	fmt.Println(res, err)
	// Output: DING <nil>
}

// A layer of one's own that never sees a permit: here, answers from a cache do not take up room.
func ExampleAround() {
	cache := map[string]string{"warm": "from the cache"}
	backend := belfry.Of(func(_ context.Context, key string) (string, error) { return "fetched " + key, nil })
	svc := belfry.Around(backend, func(ctx context.Context, key string, next *belfry.Next[string, string]) (string, error) {
		if v, ok := cache[key]; ok {
			return v, nil
		}
		return next.Call(ctx, key)
	})
	for _, key := range []string{"warm", "cold"} {
		res, _ := belfry.Do(context.Background(), svc, key)
		fmt.Println(res)
	}
	// Output:
	// from the cache
	// fetched cold
}

// Room first, work second: a job leaves the queue only when it can be done.
func ExampleReserve() {
	queue := []string{"first job", "second job"}
	worker := belfry.Of(func(_ context.Context, job string) (string, error) { return "done: " + job, nil })

	ctx := context.Background()
	r, err := belfry.Reserve(ctx, worker)
	if err != nil {
		fmt.Println("nothing taken:", err)
		return
	}
	defer r.Release()
	res, _ := r.Call(ctx, queue[0])
	queue = queue[1:]
	fmt.Println(res, "left:", len(queue))
	// Output: done: first job left: 1
}

// The maps change types, each from the outside: of the request on its way in, of the response on its way out.
func ExampleMapRequest() {
	square := belfry.Of(func(_ context.Context, n int) (int, error) { return n * n, nil })
	length := belfry.MapRequest(square, func(s string) int { return len(s) })
	text := belfry.MapResponse(length, func(n int) string { return fmt.Sprint("area ", n) })
	res, _ := belfry.Do(context.Background(), text, "four")
	fmt.Println(res)
	// Output: area 16
}

func ExampleRejection() {
	err := fmt.Errorf("get user: %w", &belfry.Rejection{Layer: "limit", Reason: "full", InFlight: 50, Limit: 50, Err: belfry.ErrNotReady})
	if r, ok := errors.AsType[*belfry.Rejection](err); ok {
		fmt.Println(r.Layer, r.InFlight, errors.Is(err, belfry.ErrRejected))
	}
	// Output: limit 50 true
}
