package breaker_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/limit"
)

func echo(_ context.Context, req int) (int, error) { return req, nil }

func BenchmarkBreaker(b *testing.B) {
	for name, cfg := range map[string]breaker.Config{
		"closed":               {},
		"closed, with a ratio": {Ratio: 0.5},
		"closed, with both":    {Ratio: 0.5, Consecutive: 5},
	} {
		b.Run(name, func(b *testing.B) {
			svc := breaker.New(belfry.Of(echo), cfg)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = belfry.Do(b.Context(), svc, 1)
			}
		})
		b.Run(name+", many callers", func(b *testing.B) {
			svc := breaker.New(belfry.Of(echo), cfg)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _ = belfry.Do(b.Context(), svc, 1)
				}
			})
		})
	}
	b.Run("closed, over a limit", func(b *testing.B) {
		svc := breaker.New(limit.NewConcurrency(belfry.Of(echo), limit.NewLimiter(1)), breaker.Config{})
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(b.Context(), svc, 1)
		}
	})
	b.Run("closed, every second fails", func(b *testing.B) {
		svc := breaker.New(belfry.Of(func(_ context.Context, n int) (int, error) {
			if n%2 == 0 {
				return 0, errIll
			}
			return n, nil
		}), breaker.Config{Ratio: 1})
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			_, _ = belfry.Do(b.Context(), svc, n)
		}
	})
	b.Run("open, refused", func(b *testing.B) {
		svc := breaker.New(belfry.Of(echo), breaker.Config{})
		svc.Trip(1 << 60)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(b.Context(), svc, 1)
		}
	})
}
