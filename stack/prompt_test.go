package stack_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/filter"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/shed"
	"github.com/belfry-go/belfry/steer"
	"github.com/belfry-go/belfry/timeout"
)

// A stamper stamps its permits, counts the calls that have the time of one, and fails as many calls as are left.
type stamper struct {
	stamped, left int
}

func (s *stamper) Prompt(any) bool { return true }

func (s *stamper) Acquire(context.Context) (belfry.Permit, error) {
	return belfry.NewPermit(s).Stamp(0), nil
}

func (s *stamper) Call(_ context.Context, permit belfry.Permit, req int) (int, error) {
	if _, ok := permit.Stamped(); ok {
		s.stamped++
	}
	if s.left--; s.left >= 0 {
		return 0, context.DeadlineExceeded
	}
	return req, nil
}

func (s *stamper) Release(belfry.Permit) {}

// never tries again.
type never struct{}

func (never) Observe(context.Context, *retry.Attempt[int]) bool { return false }

func (never) Retry(context.Context, *retry.Attempt[int], *int) (time.Duration, bool) { return 0, false }

// Layers that pass permits on at once say so, and late ones vouch for those that they spend.
func TestPrompt(t *testing.T) {
	type service = belfry.Service[int, int]
	once := func() retry.Policy[int, int] { return never{} }
	for _, c := range []struct {
		name string
		over func(inner service) service
		want bool
	}{
		{"limit.Concurrency", limit.ConcurrencyLayer[int, int](limit.NewLimiter(1)), true},
		{"limit.Adaptive", limit.AdaptiveLayer[int, int](limit.NewAdaptiveLimiter(limit.AdaptiveConfig{})), true},
		{"limit.Rate", limit.RateLayer[int, int](limit.NewRateLimiter(10, time.Second, limit.RateConfig{})), true},
		{"limit.RatePerKey", func(inner service) service {
			return limit.NewRatePerKey(inner, limit.NewKeyedLimiter[int](10, time.Second, limit.KeyedConfig{}), func(int) int { return 0 })
		}, true},
		{"shed", shed.Layer[int, int](), true},
		{"timeout", timeout.Layer[int, int](time.Minute, timeout.Config{}), true},
		{"timeout of waits", timeout.Layer[int, int](time.Minute, timeout.Config{Wait: true}), false},
		{"retry", retry.Layer[int, int](retry.Config{}), true},
		{"retry with a policy", retry.PolicyLayer(once), false},
		{"buffer", buffer.Layer[int, int](1, buffer.Config{}), true},
		{"buffer with a hook", buffer.Layer[int, int](1, buffer.Config{OnAdmit: func(time.Duration) {}}), false},
		{"filter", filter.Layer[int, int](func(_ context.Context, req int) (int, error) { return req, nil }), true},
		{"steer", func(inner service) service {
			routes, err := steer.New(func(context.Context, int) int { return 0 }, steer.Route[int, int]{Name: "a", Service: inner})
			if err != nil {
				t.Fatal(err)
			}
			return routes
		}, true},
		{"a map", func(inner service) service { return belfry.MapRequest(inner, func(n int) int { return n }) }, false},
		{"shed over a map", func(inner service) service {
			return shed.New(belfry.MapRequest(inner, func(n int) int { return n }))
		}, false},
	} {
		s := &stamper{}
		_, _ = belfry.Do(t.Context(), c.over(s), 1)
		if got := s.stamped == 1; got != c.want {
			t.Errorf("%s: Do passes the time on: %v, want %v", c.name, got, c.want)
		}
		s = &stamper{}
		r, err := belfry.Reserve(t.Context(), c.over(s))
		if err != nil {
			t.Fatal(err)
		}
		if _, late := c.over(s).(belfry.Prompter); late {
			_, _ = r.Call(t.Context(), 1)
			if s.stamped != 0 {
				t.Errorf("%s: a Reservation passes the time on", c.name)
			}
		}
		r.Release()
	}
	s := &stamper{left: 2}
	if _, err := belfry.Do(t.Context(), retry.New(service(s), retry.Config{Backoff: retry.Backoff{Min: time.Millisecond}}), 1); err != nil || s.stamped != 3 {
		t.Errorf("%d of three attempts have a time, %v", s.stamped, err)
	}
}
