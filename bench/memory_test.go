package bench

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/limit"
)

// held returns the bytes on the heap and those of stacks that are still used after collecting garbage.
func held() (heap, stacks float64) {
	var m runtime.MemStats
	for range 3 { // pools take two collections to let go
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.StackInuse)
}

// BenchmarkMemory is what is held for an endpoint that does nothing, and for a caller that waits: the heap beyond the waiting
// goroutine itself, and how much its stack grows beyond that of a goroutine that waits for a channel. Its times say nothing.
func BenchmarkMemory(b *testing.B) {
	b.Run("endpoint/serial/belfry", func(b *testing.B) {
		for b.Loop() {
			const n = 10_000
			heap, stacks := held()
			svc := balanced(b, n, n, balance.Config{}, belfry.Of(echo))
			moreHeap, moreStacks := held()
			b.ReportMetric((moreHeap+moreStacks-heap-stacks)/n, "B/endpoint")
			svc.Close()
		}
	})
	for _, c := range []struct {
		name string
		make func() func(context.Context) error
	}{
		{"limit/serial/semaphore", func() func(context.Context) error {
			sem := semaphore.NewWeighted(1)
			_ = sem.Acquire(context.Background(), 1)
			return func(ctx context.Context) error { return sem.Acquire(ctx, 1) }
		}},
		{"limit/serial/belfry", func() func(context.Context) error {
			return ours(limit.NewConcurrency(belfry.Of(echo), limit.NewLimiter(0))).do
		}},
		{"buffer/serial/belfry", func() func(context.Context) error {
			return ours(buffer.New(service(never{belfry.Of(echo)}), 2*waiters, buffer.Config{})).do
		}},
		{"buffer,max-wait/serial/belfry", func() func(context.Context) error {
			return ours(buffer.New(service(never{belfry.Of(echo)}), 2*waiters, buffer.Config{MaxWait: time.Minute})).do
		}},
		{"rate/serial/belfry", func() func(context.Context) error {
			svc := limit.NewRate(belfry.Of(echo), limit.NewRateLimiter(1, time.Hour, limit.RateConfig{}))
			_, _ = belfry.Do(context.Background(), svc, 1)
			return ours(svc).do
		}},
		{"balance/serial/belfry", func() func(context.Context) error {
			return ours(balanced(b, 3, 0, balance.Config{}, belfry.Of(echo))).do
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				perWaiter(b, c.make())
			}
		})
	}
}

// perWaiter measures with two sets of goroutines, of which the first only waits: its descriptors are used again by the second.
func perWaiter(b *testing.B, wait func(context.Context) error) {
	measure := func(wait func(context.Context) error) (heap, stacks float64) {
		heap, stacks = held()
		ctx, cancel := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		var begun atomic.Int64
		for range waiters {
			wg.Go(func() { begun.Add(1); _ = wait(ctx) })
		}
		for begun.Load() < waiters {
			runtime.Gosched()
		}
		<-time.After(20 * time.Millisecond) // the last of them are on their way
		moreHeap, moreStacks := held()
		cancel()
		wg.Wait()
		return (moreHeap - heap) / waiters, (moreStacks - stacks) / waiters
	}
	alone := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	_, _ = measure(alone) // makes the descriptors
	plainHeap, plainStacks := measure(alone)
	heap, stacks := measure(wait)
	b.ReportMetric(heap-plainHeap, "B/waiter")
	b.ReportMetric(stacks-plainStacks, "stack-B/waiter")
}
