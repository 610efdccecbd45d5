package bench

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	safetimeout "github.com/failsafe-go/failsafe-go/timeout"
	"github.com/sony/gobreaker/v2"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/hedge"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/timeout"
)

// watched is f by somebody who asks when its context ends.
func watched(f handler) handler {
	return func(ctx context.Context, n int) (int, error) {
		if ctx.Done() == nil {
			return 0, errIll
		}
		return f(ctx, n)
	}
}

func withTimeout(f handler) contender {
	return contender{"context", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := f(ctx, 1)
		return err
	}}
}

// BenchmarkTimeout bounds how long a call may take.
func BenchmarkTimeout(b *testing.B) {
	ourTimeout := func(f handler) contender { return ours(timeout.New(belfry.Of(f), time.Minute, timeout.Config{})) }
	safeTimeout := func(f handler) contender { return safe(f, safetimeout.New[int](time.Minute)) }
	compare(b, "unwatched", withTimeout(echo), safeTimeout(echo), ourTimeout(echo))
	compare(b, "watched", withTimeout(watched(echo)), safeTimeout(watched(echo)), ourTimeout(watched(echo)))
	compareFailing(b, "failure", withTimeout(fail), safeTimeout(fail), ourTimeout(fail))
}

// atOnce tries again without a pause, up to three times.
type atOnce struct{}

func (atOnce) Observe(_ context.Context, a *retry.Attempt[int]) bool { return a.Err != nil && a.N < 3 }

func (atOnce) Retry(context.Context, *retry.Attempt[int], *int) (time.Duration, bool) { return 0, true }

// BenchmarkRetry tries again up to three times: what succeeds at first, what is not worth another attempt, and what
// fails three times, without pauses.
func BenchmarkRetry(b *testing.B) {
	again := func(f handler, opts ...backoff.RetryOption) contender {
		return contender{"backoff", func(ctx context.Context) error {
			_, err := backoff.Retry(ctx, func() (int, error) { return f(ctx, 1) }, opts...)
			return err
		}}
	}
	three := backoff.WithMaxTries(3)
	compare(b, "success", again(echo, three), safe(echo, retrypolicy.NewBuilder[int]().WithMaxRetries(2).Build()),
		ours(retry.New(belfry.Of(echo), retry.Config{})))

	final := belfry.Semantics[int, int]{Classify: func(int, error) belfry.Outcome { return belfry.Outcome{Kind: belfry.Failure} }}
	permanent := func(ctx context.Context, n int) (int, error) {
		n, err := fail(ctx, n)
		return n, backoff.Permanent(err)
	}
	compareFailing(b, "failure,final", again(permanent, three),
		safe(fail, retrypolicy.NewBuilder[int]().WithMaxRetries(2).AbortOnErrors(errIll).Build()),
		ours(retry.New(belfry.Of(fail), retry.Config{}, final)))

	compareFailing(b, "failure,thrice", again(fail, three, backoff.WithBackOff(&backoff.ZeroBackOff{})),
		safe(fail, retrypolicy.NewBuilder[int]().WithMaxRetries(2).Build()),
		ours(retry.NewPolicy(belfry.Of(fail), func() retry.Policy[int, int] { return atOnce{} })))
}

// BenchmarkBreaker passes a closed breaker, fails under one that does not open, and is refused by an open one.
func BenchmarkBreaker(b *testing.B) {
	sony := func(f handler, trips bool) contender {
		cb := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{ReadyToTrip: func(gobreaker.Counts) bool { return trips }})
		return contender{"gobreaker", func(ctx context.Context) error {
			_, err := cb.Execute(func() (int, error) { return f(ctx, 1) })
			return err
		}}
	}
	safeBreaker := func(f handler) contender {
		return safe(f, circuitbreaker.NewBuilder[int]().WithFailureThreshold(1_000_000).WithDelay(time.Minute).Build())
	}
	never := breaker.Config{Consecutive: math.MaxInt}
	compare(b, "success", sony(echo, false), safeBreaker(echo), ours(breaker.New(belfry.Of(echo), never)))
	compare(b, "success,ratio", ours(breaker.New(belfry.Of(echo), breaker.Config{Ratio: 0.5})))
	compareFailing(b, "failure", sony(fail, false), safeBreaker(fail), ours(breaker.New(belfry.Of(fail), never)))

	ill := sony(fail, true)
	_ = ill.do(context.Background())
	open := circuitbreaker.NewBuilder[int]().WithDelay(time.Hour).Build()
	open.Open()
	tripped := breaker.New(belfry.Of(echo), never)
	tripped.Trip(time.Hour)
	compareFailing(b, "refused", ill, safe(echo, open), ours(tripped))
}

// BenchmarkHedge is a call that is answered before another attempt would be sent. That of failsafe-go runs in another
// goroutine than its caller; so does belfry's if it is asked to.
func BenchmarkHedge(b *testing.B) {
	safeHedge := func(f handler) contender { return safe(f, hedgepolicy.NewWithDelay[int](time.Hour)) }
	hedged := func(name string, f handler, cfg hedge.Config) contender {
		cfg.Delay = time.Hour
		return named(name, hedge.New(belfry.Of(f), cfg))
	}
	compare(b, "success", safeHedge(echo), hedged("belfry", echo, hedge.Config{}), hedged("belfry,detached", echo, hedge.Config{Detach: true}))
	compareFailing(b, "failure", safeHedge(fail), hedged("belfry", fail, hedge.Config{}))
}
