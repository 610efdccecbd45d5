package health_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/health"
)

// BenchmarkHealth is a call of a service that does nothing, by itself and probed.
func BenchmarkHealth(b *testing.B) {
	hour := health.Config{Interval: time.Hour, FastInterval: time.Hour}
	healthy := health.New(belfry.Of(echo), well, hour)
	defer healthy.Close()
	hour.StartUnhealthy = true
	unhealthy := health.New(belfry.Of(echo), well, hour)
	defer unhealthy.Close()
	for _, c := range []struct {
		name string
		svc  belfry.Service[int, int]
	}{{"bare", belfry.Of(echo)}, {"healthy", healthy}, {"unhealthy", unhealthy}} {
		b.Run(c.name, func(b *testing.B) {
			ctx := context.Background() // that of a benchmark can be cancelled, and costs more to ask
			b.ReportAllocs()
			for b.Loop() {
				_, _ = belfry.Do(ctx, c.svc, 1)
			}
		})
	}
}

// BenchmarkParallel is a call from all processors at once.
func BenchmarkParallel(b *testing.B) {
	svc := health.New(belfry.Of(echo), well, health.Config{Interval: time.Hour})
	defer svc.Close()
	ctx := context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _ = belfry.Do(ctx, svc, 1)
		}
	})
}
