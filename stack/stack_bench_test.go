package stack_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/stack"
)

// client puts the layers of a client over svc.
func client(tb testing.TB, svc belfry.Service[int, int]) belfry.Service[int, int] {
	tb.Helper()
	built, err := stack.New[int, int]().
		LoadShed().
		Buffer(64).
		ConcurrencyLimit(500).
		Timeout(10 * time.Second).
		Retry(retry.Config{MaxAttempts: 3}).
		Build(svc)
	if err != nil {
		tb.Fatal(err)
	}
	return built
}

// replicas returns a balancer over three functions, of which one is dialled.
func replicas(tb testing.TB) belfry.Service[int, int] {
	tb.Helper()
	dial := func(context.Context, string, string) (belfry.Service[int, int], error) { return belfry.Of(double), nil }
	b, err := balance.New(discover.List("a", "b", "c"), dial, balance.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = b.Close() })
	if _, err := belfry.Do(tb.Context(), b, 1); err != nil { // waits for the first
		tb.Fatal(err)
	}
	return b
}

func BenchmarkClient(b *testing.B) {
	for _, c := range []struct {
		name string
		svc  belfry.Service[int, int]
	}{
		{"over a function", client(b, belfry.Of(double))},
		{"over three endpoints", client(b, replicas(b))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = belfry.Do(b.Context(), c.svc, 1)
			}
		})
		b.Run(c.name+", parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = belfry.Do(b.Context(), c.svc, 1)
				}
			})
		})
	}
}
