package belfryhttp

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/filter"
)

func TestStatusOfFilter(t *testing.T) {
	for name, c := range map[string]struct {
		cause  error
		code   int
		reason string
		after  time.Duration
	}{
		"rejected": {errors.New("not in here"), http.StatusForbidden, "filter: rejected", 0},
		"busy":     {&belfry.Rejection{Layer: "quota", Reason: "used up", RetryAfter: time.Minute}, http.StatusServiceUnavailable, "quota: used up", time.Minute},
	} {
		svc := filter.New(belfry.Of(func(context.Context, int) (int, error) { return 0, nil }), func(context.Context, int) (int, error) { return 0, c.cause })
		_, err := belfry.Do(t.Context(), svc, 1)
		if code, reason, after := Status(err); code != c.code || reason != c.reason || after != c.after {
			t.Errorf("%s: %d %q %v", name, code, reason, after)
		}
	}
}
