package stack_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/stack"
)

func TestBreakerString(t *testing.T) {
	s := stack.New[int, int]().
		Breaker().
		Breaker(breaker.Config{Ratio: 0.5}).
		Breaker(breaker.Config{
			Consecutive: 3, Ratio: 0.25, Window: time.Minute, MinCalls: 9, MinBackoff: time.Millisecond, MaxBackoff: time.Second,
			Jitter: 1, MaxRetryAfter: time.Hour, ProbeTimeout: time.Second, Wait: true,
		})
	const want = "breaker(5 failures in a row) → breaker(ratio 0.5) → breaker(3 failures in a row, ratio 0.25, window 1m0s, " +
		"min calls 9, min pause 1ms, max pause 1s, jitter 1, max retry-after 1h0m0s, probe timeout 1s, with wait)"
	if got := fmt.Sprint(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, err := s.Breaker(breaker.Config{Ratio: 2}).Breaker(breaker.Config{}, breaker.Config{}).Build(belfry.Of(double))
	for _, want := range []string{"layer 4, breaker: ", "within 0 and 1", "layer 5, breaker: at most one Config"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// A patient policy tries again when there was no room.
type patient struct{ retry.Policy[int, int] }

func (p patient) Observe(ctx context.Context, a *retry.Attempt[int]) bool {
	return a.Unready || p.Policy.Observe(ctx, a)
}

func (p patient) Retry(ctx context.Context, a *retry.Attempt[int], next *int) (time.Duration, bool) {
	if a.Unready {
		return 0, true
	}
	return p.Policy.Retry(ctx, a, next)
}

// A retry over a breaker sends nothing while it is open: it ends, or waits for the pause if its policy, or the breaker, does.
func TestRetryOverBreaker(t *testing.T) {
	type attempts []time.Duration
	const pause = 10 * time.Millisecond
	retries := retry.Config{MaxAttempts: 9, Backoff: retry.Backoff{Min: pause, Max: pause, Jitter: 1e-9}, MaxRetryAfter: time.Hour}
	standard := retry.Standard[int, int](retries)
	breaking := breaker.Config{Consecutive: 2, MinBackoff: time.Minute, MaxBackoff: time.Minute, Jitter: 1e-9}
	waiting := breaking
	waiting.Wait = true
	base := stack.New[int, int]()
	for _, c := range []struct {
		name       string
		stack      stack.Stack[int, int]
		ill        int // so many attempts fail
		retryAfter time.Duration
		want       attempts
		failed     bool
	}{
		{"it ends with the error of the attempt that was sent", base.Retry(retries).Breaker(breaking), 2, 0, attempts{0, pause}, true},
		{"a breaker outside counts requests, not attempts", base.Breaker(breaking).Retry(retries), 3, 0, attempts{0, pause, 2 * pause, 3 * pause}, false},
		{
			"a policy that goes on pauses for as long as the breaker asks",
			base.RetryPolicy(func() retry.Policy[int, int] { return patient{standard()} }).Breaker(breaking), 3, 0,
			attempts{0, pause, time.Minute + pause, 2*time.Minute + pause},
			false,
		},
		{
			"which may be as long as the server asks",
			base.RetryPolicy(func() retry.Policy[int, int] { return patient{standard()} }).Breaker(breaking), 2, 4 * time.Minute,
			attempts{0, 4*time.Minute + pause, 8*time.Minute + 2*pause},
			false,
		},
		{"a breaker that waits does so for it", base.Retry(retries).Breaker(waiting), 3, 0, attempts{0, pause, time.Minute + pause, 2*time.Minute + pause}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var sent attempts
				svc, err := c.stack.Semantics(belfry.Semantics[int, int]{Classify: func(_ int, err error) belfry.Outcome {
					out := belfry.ClassifyError(err)
					if out.Kind == belfry.Failure {
						out.RetryAfter = c.retryAfter
					}
					return out
				}}).Build(belfry.Of(func(context.Context, int) (int, error) {
					sent = append(sent, time.Since(begun).Round(time.Millisecond))
					if len(sent) <= c.ill {
						return 0, errIll
					}
					return 7, nil
				}))
				if err != nil {
					t.Fatal(err)
				}
				res, err := belfry.Do(t.Context(), svc, 1)
				if c.failed && (!errors.Is(err, errIll) || errors.Is(err, belfry.ErrRejected)) || !c.failed && (res != 7 || err != nil) {
					t.Errorf("got %d, %v", res, err)
				}
				if fmt.Sprint(sent) != fmt.Sprint(c.want) {
					t.Errorf("sent at %v, want %v", sent, c.want)
				}
			})
		})
	}
}

var errIll = errors.New("ill")
