package timeout_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/timeout"
)

func echo(_ context.Context, req string) (string, error) { return req, nil }

func watch(ctx context.Context, req string) (string, error) {
	_ = ctx.Done()
	return req, nil
}

// withTimeout is what one writes without this package.
func withTimeout(ctx context.Context, req string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return watch(ctx, req)
}

func BenchmarkTimeout(b *testing.B) {
	soon, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	streamed := kinds["streamed"]
	for _, c := range []struct {
		name string
		ctx  context.Context
		svc  belfry.Service[string, string]
	}{
		{"unwatched", b.Context(), timeout.New(belfry.Of(echo), time.Minute, timeout.Config{})},
		{"unwatched, with wait", b.Context(), timeout.New(belfry.Of(echo), time.Minute, timeout.Config{Wait: true})},
		{"under an earlier deadline", soon, timeout.New(belfry.Of(echo), 2*time.Hour, timeout.Config{})},
		{"watched", b.Context(), timeout.New(belfry.Of(watch), time.Minute, timeout.Config{})},
		{"watched, streamed", b.Context(), timeout.New(belfry.Of(watch), time.Minute, timeout.Config{}, streamed)},
		{"watched, streamed, bounded", b.Context(), timeout.New(belfry.Of(watch), time.Minute, timeout.Config{Stream: true}, streamed)},
		{"standard library, watched", b.Context(), belfry.Of(withTimeout)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = belfry.Do(c.ctx, c.svc, "")
			}
		})
	}
}
