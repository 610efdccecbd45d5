package limit_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

func BenchmarkRate(b *testing.B) {
	plenty := func() *limit.RateLimiter {
		return limit.NewRateLimiter(1_000_000_000, time.Second, limit.RateConfig{})
	}
	b.Run("one caller", func(b *testing.B) {
		svc := limit.NewRate(belfry.Of(length), plenty())
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(b.Context(), svc, "")
		}
	})
	b.Run("many callers", func(b *testing.B) {
		svc := limit.NewRate(belfry.Of(length), plenty())
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = belfry.Do(b.Context(), svc, "")
			}
		})
	})
	b.Run("a reservation", func(b *testing.B) {
		svc := limit.NewRate(belfry.Of(length), plenty())
		b.ReportAllocs()
		for b.Loop() {
			permit, _ := svc.Acquire(b.Context())
			svc.Release(permit)
		}
	})
	b.Run("too many, refused", func(b *testing.B) {
		svc := limit.NewRate(belfry.Of(length), limit.NewRateLimiter(1, time.Hour, limit.RateConfig{}))
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.TryDo(b.Context(), svc, "")
		}
	})
}

func BenchmarkRatePerKey(b *testing.B) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	for _, n := range []int{1, 10_000} {
		b.Run(strconv.Itoa(n)+" keys", func(b *testing.B) {
			l := limit.NewKeyedLimiter[string](1_000_000_000, time.Second, limit.KeyedConfig{})
			svc := limit.NewRatePerKey(belfry.Of(length), l, itself)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, _ = belfry.Do(b.Context(), svc, keys[i%n])
			}
		})
	}
	b.Run("refused", func(b *testing.B) {
		svc := limit.NewRatePerKey(belfry.Of(length), limit.NewKeyedLimiter[string](1, time.Hour, limit.KeyedConfig{}), itself)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(b.Context(), svc, "key")
		}
	})
}

func BenchmarkAdaptive(b *testing.B) {
	b.Run("one caller", func(b *testing.B) {
		svc := limit.NewAdaptive(belfry.Of(length), limit.NewAdaptiveLimiter(limit.AdaptiveConfig{}))
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(b.Context(), svc, "")
		}
	})
}
