package limit_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

func length(_ context.Context, req string) (int, error) { return len(req), nil }

var opened = &stream{}

func reopen(context.Context, string) (*stream, error) { return opened, nil }

func BenchmarkConcurrency(b *testing.B) {
	b.Run("one caller", func(b *testing.B) {
		svc := limit.NewConcurrency(belfry.Of(length), limit.NewLimiter(1))
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(b.Context(), svc, "")
		}
	})
	b.Run("many callers", func(b *testing.B) {
		svc := limit.NewConcurrency(belfry.Of(length), limit.NewLimiter(1000))
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = belfry.Do(b.Context(), svc, "")
			}
		})
	})
	b.Run("full, refused", func(b *testing.B) {
		svc := limit.NewConcurrency(belfry.Of(length), limit.NewLimiter(0))
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.TryDo(b.Context(), svc, "")
		}
	})
}
