package buffer_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
)

func length(_ context.Context, req string) (int, error) { return len(req), nil }

func BenchmarkBuffer(b *testing.B) {
	b.Run("one caller", func(b *testing.B) {
		svc := buffer.New(belfry.Of(length), 1, buffer.Config{})
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(b.Context(), svc, "")
		}
	})
	b.Run("many callers", func(b *testing.B) {
		svc := buffer.New(belfry.Of(length), 1000, buffer.Config{})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = belfry.Do(b.Context(), svc, "")
			}
		})
	})
	b.Run("one caller, CoDel", func(b *testing.B) {
		svc := buffer.New(belfry.Of(length), 1, buffer.Config{Order: buffer.CoDel})
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(b.Context(), svc, "")
		}
	})
	b.Run("many callers that wait", func(b *testing.B) {
		inner := &moody{places: make(chan struct{}, 1), calm: true}
		svc := buffer.New(service(inner), 1000, buffer.Config{})
		b.SetParallelism(50)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = belfry.Do(b.Context(), svc, "")
			}
		})
		b.ReportMetric(float64(svc.Stats().Admitted)/float64(b.N), "admitted/op")
	})
	b.Run("full, refused", func(b *testing.B) {
		svc := buffer.New(belfry.Of(length), 1, buffer.Config{})
		if _, err := svc.Acquire(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.TryDo(b.Context(), svc, "")
		}
	})
	b.Run("function alone", func(b *testing.B) {
		svc := belfry.Of(length)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = belfry.Do(b.Context(), svc, "")
		}
	})
}
