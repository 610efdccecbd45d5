package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"go.uber.org/ratelimit"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/shed"
)

var errFull = errors.New("full")

// acquire calls f under a place of sem, waiting for it.
func acquire(sem *semaphore.Weighted, f handler) contender {
	return contender{"semaphore", func(ctx context.Context) error {
		if err := sem.Acquire(ctx, 1); err != nil {
			return err
		}
		defer sem.Release(1)
		_, err := f(ctx, 1)
		return err
	}}
}

// tryAcquire calls f if sem has a place.
func tryAcquire(sem *semaphore.Weighted, f handler) contender {
	return contender{"semaphore", func(ctx context.Context) error {
		if !sem.TryAcquire(1) {
			return errFull
		}
		defer sem.Release(1)
		_, err := f(ctx, 1)
		return err
	}}
}

// try calls svc if it has room now.
func try(svc service) contender {
	return contender{"belfry", func(ctx context.Context) error {
		_, err := belfry.TryDo(ctx, svc, 1)
		return err
	}}
}

func limited(f handler, n int) service {
	return limit.NewConcurrency(belfry.Of(f), limit.NewLimiter(n))
}

// BenchmarkLimit bounds the calls in flight.
func BenchmarkLimit(b *testing.B) {
	compare(b, "success", acquire(semaphore.NewWeighted(1000), echo), safe(echo, bulkhead.New[int](1000)), ours(limited(echo, 1000)))
	compareFailing(b, "failure", acquire(semaphore.NewWeighted(1000), fail), safe(fail, bulkhead.New[int](1000)), ours(limited(fail, 1000)))
	compareFailing(b, "refused", tryAcquire(semaphore.NewWeighted(0), echo), safe(echo, bulkhead.New[int](0)), try(limited(echo, 0)))
}

// BenchmarkShed bounds them and refuses what would have to wait.
func BenchmarkShed(b *testing.B) {
	shedding := func(f handler, n int) contender { return ours(shed.New(limited(f, n))) }
	compare(b, "success", tryAcquire(semaphore.NewWeighted(1000), echo), shedding(echo, 1000))
	compareFailing(b, "failure", tryAcquire(semaphore.NewWeighted(1000), fail), shedding(fail, 1000))
	compareFailing(b, "refused", tryAcquire(semaphore.NewWeighted(0), echo), shedding(echo, 0))
}

// plenty is a rate that nobody here exceeds.
const plenty = 1_000_000_000

// BenchmarkRate bounds the calls that begin in a second.
func BenchmarkRate(b *testing.B) {
	waiting := func(f handler) contender {
		limiter := rate.NewLimiter(plenty, plenty)
		return contender{"x-time-rate", func(ctx context.Context) error {
			if err := limiter.Wait(ctx); err != nil {
				return err
			}
			_, err := f(ctx, 1)
			return err
		}}
	}
	taking := func(f handler) contender {
		limiter := ratelimit.New(plenty)
		return contender{"uber-ratelimit", func(ctx context.Context) error {
			limiter.Take()
			_, err := f(ctx, 1)
			return err
		}}
	}
	bursty := func(f handler) contender { return safe(f, ratelimiter.NewBursty[int](plenty, time.Second)) }
	rated := func(f handler) contender {
		return ours(limit.NewRate(belfry.Of(f), limit.NewRateLimiter(plenty, time.Second, limit.RateConfig{Burst: 1_000_000})))
	}
	compare(b, "success", waiting(echo), taking(echo), bursty(echo), rated(echo))
	compareFailing(b, "failure", waiting(fail), taking(fail), bursty(fail), rated(fail))

	spent := rate.NewLimiter(rate.Every(time.Hour), 1)
	spent.Allow()
	empty := limit.NewRate(belfry.Of(echo), limit.NewRateLimiter(1, time.Hour, limit.RateConfig{}))
	_, _ = belfry.Do(context.Background(), empty, 1)
	compareFailing(b, "refused",
		contender{"x-time-rate", func(context.Context) error {
			if !spent.Allow() {
				return errFull
			}
			return nil
		}},
		try(empty))
}

// BenchmarkBuffer passes a waiting room that has seats.
func BenchmarkBuffer(b *testing.B) {
	compare(b, "success", ours(buffer.New(belfry.Of(echo), 1024, buffer.Config{})))
	compareFailing(b, "failure", ours(buffer.New(belfry.Of(fail), 1024, buffer.Config{})))
}

// safe calls f through policies of failsafe-go, under the caller's context, as the others do. That costs it a copy of its executor.
func safe(f handler, policies ...failsafe.Policy[int]) contender {
	executor := failsafe.With(policies...)
	return contender{"failsafe", func(ctx context.Context) error {
		_, err := executor.WithContext(ctx).GetWithExecution(func(exec failsafe.Execution[int]) (int, error) {
			return f(exec.Context(), 1)
		})
		return err
	}}
}
