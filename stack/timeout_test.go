package stack_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/stack"
	"github.com/belfry-go/belfry/timeout"
)

// slow answers after a minute, unless its context ends first.
func slow(ctx context.Context, n int) (int, error) {
	select {
	case <-time.After(time.Minute):
		return n, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func TestTimeoutAndRetry(t *testing.T) {
	retries := retry.Config{MaxAttempts: 3, Backoff: retry.Backoff{Min: time.Second, Max: time.Second, Jitter: 1e-9}}
	base := stack.New[int, int]()
	for _, c := range []struct {
		name     string
		stack    stack.Stack[int, int]
		took     time.Duration
		attempts int
	}{
		{"S11 outside Retry, a timeout is one deadline for all attempts and pauses", base.Timeout(10 * time.Second).Retry(retries), 10 * time.Second, 1},
		{"S11 inside Retry, each attempt has its own, and retry sees it expire", base.Retry(retries).Timeout(10 * time.Second), 32 * time.Second, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				svc, err := c.stack.Build(belfry.Of(func(ctx context.Context, n int) (int, error) { attempts++; return slow(ctx, n) }))
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_, err = belfry.Do(t.Context(), svc, 1)
				if !errors.Is(err, timeout.Err) || errors.Is(err, belfry.ErrRejected) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(start).Round(time.Millisecond); took != c.took || attempts != c.attempts {
					t.Errorf("%d attempts in %v, want %d in %v", attempts, took, c.attempts, c.took)
				}
			})
		})
	}
}
