package retry_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/retry"
)

func BenchmarkRetry(b *testing.B) {
	ctx := context.Background()
	answer := &page{status: 200}
	inner := belfry.Of(func(context.Context, string) (*page, error) { return answer, nil })
	b.Run("success", func(b *testing.B) {
		svc := retry.New(inner, retry.Config{}, pages)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(ctx, svc, "hello")
		}
	})
	b.Run("success, policy", func(b *testing.B) {
		svc := retry.NewPolicy(inner, always(&judge{observe: failed}), pages)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(ctx, svc, "hello")
		}
	})
	b.Run("three attempts, no pause", func(b *testing.B) {
		failing := belfry.Of(func(context.Context, string) (*page, error) { return nil, errBroken })
		svc := retry.NewPolicy(failing, always(&judge{observe: func(a *retry.Attempt[*page]) bool { return a.N < 3 }}), pages)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(ctx, svc, "hello")
		}
	})
	b.Run("success, parallel", func(b *testing.B) {
		svc := retry.New(inner, retry.Config{}, pages)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = belfry.Do(ctx, svc, "hello")
			}
		})
	})
}
