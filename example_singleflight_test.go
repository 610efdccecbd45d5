package belfry_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/belfry-go/belfry"
)

// A Flight is a call that others wait for.
type Flight[V any] struct {
	landed chan struct{}
	lost   bool // the caller who made it has left, or panicked: its end is nobody else's
	v      V
	err    error
}

// WithSingleFlight makes one call where several callers ask for the same at the same time. Each has room of its own
// while it waits, so that if the one who calls leaves, another can take over. Answers must be fit for sharing.
func WithSingleFlight[K comparable, V any](inner belfry.Service[K, V]) belfry.Service[K, V] {
	var mu sync.Mutex
	flights := make(map[K]*Flight[V])
	board := func(key K) (f *Flight[V], first bool) {
		mu.Lock()
		defer mu.Unlock()
		if f = flights[key]; f == nil {
			f, first = &Flight[V]{landed: make(chan struct{}), lost: true}, true
			flights[key] = f
		}
		return f, first
	}
	land := func(key K, f *Flight[V]) {
		mu.Lock()
		defer mu.Unlock()
		delete(flights, key)
		close(f.landed)
	}
	return belfry.Around(inner, func(ctx context.Context, key K, next *belfry.Next[K, V]) (v V, err error) {
		for {
			f, first := board(key)
			if first {
				defer land(key, f)
				f.v, f.err = next.Call(ctx, key)
				f.lost = f.err != nil && ctx.Err() != nil
				return f.v, f.err
			}
			select {
			case <-f.landed:
			case <-ctx.Done():
				return v, ctx.Err()
			}
			if !f.lost {
				return f.v, f.err
			}
		}
	})
}

// Callers at the same time share the answer of one call.
func ExampleAround_singleFlight() {
	svc := WithSingleFlight(belfry.Of(func(_ context.Context, key string) (string, error) { return "one " + key + " for all", nil }))
	answers := make([]string, 3)
	var callers sync.WaitGroup
	for i := range answers {
		callers.Go(func() { answers[i], _ = belfry.Do(context.Background(), svc, "bell") })
	}
	callers.Wait()
	fmt.Println(strings.Join(answers, ", "))
	// Output: one bell for all, one bell for all, one bell for all
}
