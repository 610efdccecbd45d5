package belfryhttp

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/limit"
)

// What a rate refuses is 429 with the time of the next call that may go, whatever stands in front of it.
func TestServerRate(t *testing.T) {
	for name, c := range map[string]struct {
		stack              func() ServerStack
		reason, retryAfter string
	}{
		"behind a shed": {func() ServerStack { return NewServerStack().LoadShed().RateLimit(1, 10*time.Second) }, "rate: too many", "10"},
		"one that is shared": {func() ServerStack {
			l := limit.NewRateLimiter(1, 10*time.Second, limit.RateConfig{})
			return NewServerStack().LoadShed().RateLimiter(l)
		}, "rate: too many", "10"},
		"by key": {func() ServerStack {
			return NewServerStack().RateLimitPerKey(1, 10*time.Second, func(x Exchange) string { return x.Request().Host })
		}, "rate: too many for the key", "10"},
	} {
		overBoth(t, name, func(t *testing.T, n *network, tr *http.Transport) {
			n.serveStack(c.stack(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
			if res, _ := fetch(t, tr); res.StatusCode != http.StatusNoContent {
				t.Errorf("the first: %d", res.StatusCode)
			}
			res, _ := fetch(t, tr)
			wantAnswer(t, res, 429, c.reason, c.retryAfter)
			synctest.Wait()
			time.Sleep(10 * time.Second)
			if res, _ := fetch(t, tr); res.StatusCode != http.StatusNoContent {
				t.Errorf("when told to come again: %d", res.StatusCode)
			}
		})
	}
	overBoth(t, "without a shed it waits for its token", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Buffer(5, buffer.Config{}).RateLimit(1, 10*time.Second), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
		start := time.Now()
		for range 2 {
			if res, _ := fetch(t, tr); res.StatusCode != 204 {
				t.Errorf("got %d", res.StatusCode)
			}
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("after %v", took)
		}
	})
	t.Run("mistakes", func(t *testing.T) {
		_, err := NewServerStack().RateLimit(0, time.Second).RateLimiter(nil).RateLimitPerKey(1, time.Second, nil).Handler(http.NotFoundHandler())
		for _, want := range []string{"layer 1, rate limit", "layer 2, rate limit", "layer 3, rate limit per key"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in %v", want, err)
			}
		}
	})
}
