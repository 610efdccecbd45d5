package stack_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/stack"
)

func TestRateLimit(t *testing.T) {
	s := stack.New[int, int]().RateLimit(2, time.Hour)
	a, err := s.Build(belfry.Of(double))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := s.Build(belfry.Of(double))
	for _, svc := range []belfry.Service[int, int]{a, a, b} {
		if _, err := belfry.TryDo(t.Context(), svc, 1); err != nil {
			t.Error(err)
		}
	}
	if _, err := belfry.TryDo(t.Context(), a, 1); !errors.Is(err, belfry.ErrNotReady) || belfry.RetryAfter(err) <= 0 {
		t.Errorf("got %v", err)
	}

	l := limit.NewRateLimiter(1, time.Hour, limit.RateConfig{})
	shared := stack.New[int, int]().RateLimiter(l)
	a, _ = shared.Build(belfry.Of(double))
	b, _ = shared.Build(belfry.Of(double))
	if _, err := belfry.TryDo(t.Context(), a, 1); err != nil {
		t.Error(err)
	}
	if _, err := belfry.TryDo(t.Context(), b, 1); !errors.Is(err, belfry.ErrNotReady) {
		t.Errorf("a shared RateLimiter is not shared: %v", err)
	}

	text := stack.New[int, int]().RateLimit(100, time.Second).RateLimit(1, time.Minute, limit.RateConfig{Burst: 5}).RateLimiter(l).String()
	if text != "rate limit(100 per 1s) → rate limit(1 per 1m0s, burst 5) → rate limit(shared)" {
		t.Errorf("got %s", text)
	}

	_, err = stack.New[int, int]().RateLimit(0, time.Second).RateLimit(1, time.Second, limit.RateConfig{Burst: -1}).
		RateLimiter(nil).RateLimiter(l).RateLimiter(l).Build(belfry.Of(double))
	for _, want := range []string{
		"layer 1, rate limit: limit: rate must be 1 to", "layer 2, rate limit: limit: burst must be 1 to",
		"layer 3, rate limit: rate limiter must not be nil", "layer 5, rate limit: the same RateLimiter as in layer 4",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func TestRateLimitPerKey(t *testing.T) {
	parity := func(n int) string { return []string{"even", "odd"}[n%2] }
	svc, err := stack.New[int, int]().RateLimitPerKey(1, time.Hour, parity).Build(belfry.Of(double))
	if err != nil {
		t.Fatal(err)
	}
	for n, ok := range map[int]bool{1: true, 2: true} {
		if _, err := belfry.Do(t.Context(), svc, n); (err == nil) != ok {
			t.Errorf("%d: %v", n, err)
		}
	}
	if _, err := belfry.Do(t.Context(), svc, 3); !errors.Is(err, belfry.ErrNotReady) || belfry.RetryAfter(err) <= 0 {
		t.Errorf("got %v", err)
	}
	text := stack.New[int, int]().RateLimitPerKey(5, time.Second, parity, limit.KeyedConfig{Burst: 2, MaxKeys: 9}).String()
	if text != "rate limit per key(5 per 1s, burst 2, max keys 9)" {
		t.Errorf("got %s", text)
	}
	_, err = stack.New[int, int]().RateLimitPerKey(5, time.Second, nil, limit.KeyedConfig{MaxKeys: -1}).Build(belfry.Of(double))
	for _, want := range []string{"layer 1, rate limit per key: key must not be nil", "limit: max keys must be 1 to"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func TestAdaptiveLimit(t *testing.T) {
	s := stack.New[int, int]().AdaptiveLimit().AdaptiveLimit(limit.AdaptiveConfig{Initial: 5, Min: 2, Max: 9, Window: time.Second})
	if got := s.String(); got != "adaptive limit → adaptive limit(initial 5, min 2, max 9, window 1s)" {
		t.Errorf("got %s", got)
	}
	svc, err := s.Build(belfry.Of(double))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := belfry.Do(t.Context(), svc, 4); got != 8 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if s := svc.(*limit.Adaptive[int, int]).Stats(); s.Limit != 4 || s.Admitted != 1 {
		t.Errorf("%+v", s)
	}
	_, err = stack.New[int, int]().AdaptiveLimit(limit.AdaptiveConfig{Min: -1}, limit.AdaptiveConfig{}).Build(belfry.Of(double))
	for _, want := range []string{"layer 1, adaptive limit: at most one Config", "limit: min must be 1 to"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
