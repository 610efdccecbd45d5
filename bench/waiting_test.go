package bench

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
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
	start, busy := time.Now(), cpu(b)
	<-time.After(100 * time.Millisecond)
	b.ReportMetric(100*float64(cpu(b)-busy)/float64(time.Since(start)), "%cpu")
	cancel()
	wg.Wait()
}

func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

const (
	waiters = 10_000
	places  = 10
)

// BenchmarkHandOff is 10,000 callers that wait for ten places: how long it takes until a place has gone from one to the next.
func BenchmarkHandOff(b *testing.B) {
	yield := func(_ context.Context, n int) (int, error) { runtime.Gosched(); return n, nil }
	svc := limited(yield, places)
	b.Run("success/parallel/semaphore", func(b *testing.B) { handOff(b, acquire(semaphore.NewWeighted(places), yield)) })
	b.Run("success/parallel/belfry", func(b *testing.B) { handOff(b, ours(svc)) })
}

// handOff lets all callers wait in turn until there were b.N calls.
func handOff(b *testing.B, c contender) {
	var (
		wg      sync.WaitGroup
		started atomic.Int64
		calls   atomic.Int64
		enough  = make(chan struct{})
		total   = int64(b.N) + waiters
	)
	b.ReportAllocs()
	for range waiters {
		wg.Go(func() {
			started.Add(1)
			for calls.Load() < total {
				_ = c.do(context.Background())
				switch calls.Add(1) {
				case waiters: // as many have been through as there are: from here on it counts
					b.ResetTimer()
				case total:
					close(enough)
				}
			}
		})
	}
	<-enough
	b.StopTimer()
	wg.Wait()
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
