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

func BenchmarkLazy(b *testing.B) {
	svc := belfry.NewLazy(func(context.Context) (belfry.Service[int, int], error) {
		return belfry.Of(func(_ context.Context, req int) (int, error) { return req, nil }), nil
	})
	defer svc.Close()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = belfry.Do(b.Context(), svc, 1)
	}
}

func BenchmarkCallAll(b *testing.B) {
	svc := belfry.Of(func(_ context.Context, req int) (int, error) { return req, nil })
	inputs := func(yield func(int) bool) {
		for i := 0; b.Loop() && yield(i); i++ {
		}
	}
	b.ReportAllocs()
	for r := range belfry.CallAll(b.Context(), svc, inputs, 8) {
		_ = r
	}
}
