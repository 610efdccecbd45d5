package pool_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/pool"
)

func length(_ context.Context, req string) (int, error) { return len(req), nil }

func lengths(tb testing.TB) *pool.Pool[string, string, int] {
	p := pool.New(func(string) (belfry.Service[string, int], error) { return belfry.Of(length), nil }, pool.Config{})
	tb.Cleanup(func() { _ = p.Close() })
	return p
}

func BenchmarkPool(b *testing.B) {
	for name, svc := range map[string]belfry.Service[string, int]{
		"of one key":     lengths(b).Get("a"),
		"by the request": lengths(b).Service(func(req string) string { return req }),
		"function alone": belfry.Of(length),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = belfry.Do(b.Context(), svc, "a")
			}
		})
	}
}
