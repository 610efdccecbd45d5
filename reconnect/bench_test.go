package reconnect_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/reconnect"
)

func length(_ context.Context, req string) (int, error) { return len(req), nil }

func made(tb testing.TB) *reconnect.Service[string, int] {
	svc := reconnect.New(func(context.Context) (belfry.Service[string, int], error) { return belfry.Of(length), nil }, reconnect.Config{})
	tb.Cleanup(func() { _ = svc.Close() })
	if _, err := belfry.Do(tb.Context(), svc, ""); err != nil {
		tb.Fatal(err)
	}
	return svc
}

func BenchmarkReconnect(b *testing.B) {
	b.Run("one caller", func(b *testing.B) {
		svc := made(b)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(b.Context(), svc, "")
		}
	})
	b.Run("many callers", func(b *testing.B) {
		svc := made(b)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = belfry.Do(b.Context(), svc, "")
			}
		})
	})
	b.Run("function alone", func(b *testing.B) {
		svc := belfry.Of(length)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(b.Context(), svc, "")
		}
	})
}
