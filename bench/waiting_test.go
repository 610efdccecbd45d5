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
	"github.com/belfry-go/belfry/limit"
)

// BenchmarkUnready is 64 callers of a balancer of 1000 endpoints: while ten of them are ready, and while none is, which
// should cost nothing: %cpu is the share of one processor.
func BenchmarkUnready(b *testing.B) {
	ten := balanced(b, 1000, 10, balance.Config{}, belfry.Of(echo))
	b.Run("ten-of-1000/parallel/belfry", func(b *testing.B) { parallel(b, true, ours(ten).do) })
	b.Run("none-of-1000/parallel/belfry", func(b *testing.B) {
		for b.Loop() {
			idle(b, balanced(b, 1000, 0, balance.Config{}, belfry.Of(echo)))
		}
	})
}

// idle measures what waiting costs. Its time is that of the measurement, and says nothing.
func idle(b *testing.B, svc *balance.Balancer[int, int]) {
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() { _, _ = belfry.Do(ctx, svc, 1) })
	}
	for svc.Stats().Waiting < callers {
		runtime.Gosched()
	}
	runtime.GC()
	<-time.After(50 * time.Millisecond) // what comes after a collection, and the way of each caller to where it waits, is not waiting
	start, busy := time.Now(), cpu(b)
	<-time.After(100 * time.Millisecond)
	b.ReportMetric(100*float64(cpu(b)-busy)/float64(time.Since(start)), "%cpu")
	cancel()
	wg.Wait()
}

const (
	waiters = 10_000
	places  = 10
)

// BenchmarkHandOff is 10,000 callers that wait for ten places: how long it takes until a place has gone from one to the next.
func BenchmarkHandOff(b *testing.B) {
	yield := func(_ context.Context, n int) (int, error) { runtime.Gosched(); return n, nil }
	sem := semaphore.NewWeighted(places)
	b.Run("success/parallel/semaphore", func(b *testing.B) {
		handOff(b, acquire(sem, yield), func() { _ = sem.Acquire(context.Background(), places) }, func() { sem.Release(places) })
	})
	limiter := limit.NewLimiter(places)
	svc := limit.NewConcurrency(belfry.Of(yield), limiter)
	b.Run("success/parallel/belfry", func(b *testing.B) {
		handOff(b, ours(svc), func() { _ = limiter.Resize(0) }, func() { _ = limiter.Resize(places) })
	})
}

// handOff lets all callers come while the places are shut, and measures how long they take once those are open. What it
// reports is for one call.
func handOff(b *testing.B, c contender, shut, open func()) {
	var total time.Duration
	for b.Loop() {
		shut()
		var wg sync.WaitGroup
		var begun atomic.Int64
		for range waiters {
			wg.Go(func() { begun.Add(1); _ = c.do(context.Background()) })
		}
		for begun.Load() < waiters {
			runtime.Gosched()
		}
		<-time.After(10 * time.Millisecond) // the last of them are on their way
		start := time.Now()
		open()
		wg.Wait()
		total += time.Since(start)
	}
	b.ReportMetric(float64(total)/float64(b.N)/waiters, "ns/op")
}

// Whoever came first is served first, also when 10,000 are waiting.
func TestServedInOrder(t *testing.T) {
	limiter := limit.NewLimiter(0)
	var order []int // by who has the only place
	svc := limit.NewConcurrency(belfry.Of(func(_ context.Context, n int) (int, error) {
		order = append(order, n)
		return n, nil
	}), limiter)
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() { _, _ = belfry.Do(t.Context(), svc, i) })
		for limiter.Stats().Waiting <= i {
			runtime.Gosched()
		}
	}
	if err := limiter.Resize(1); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for i, n := range order {
		if i != n {
			t.Fatalf("%d was served in place of %d", n, i)
		}
	}
	if len(order) != waiters {
		t.Errorf("%d were served", len(order))
	}
}
