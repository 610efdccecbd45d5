package belfry_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/belfry-go/belfry"
)

func BenchmarkDo(b *testing.B) {
	for _, depth := range []int{0, 1, 6} {
		b.Run("layers="+strconv.Itoa(depth), func(b *testing.B) {
			svc := belfry.Of(func(_ context.Context, req int) (int, error) { return req, nil })
			for range depth {
				svc = belfry.MapRequest(svc, func(i int) int { return i })
			}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = belfry.Do(b.Context(), svc, 1)
			}
		})
	}
}

func BenchmarkNoWait(b *testing.B) {
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_ = belfry.NoWait(ctx)
	}
}
