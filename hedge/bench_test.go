package hedge_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/hedge"
)

func BenchmarkHedge(b *testing.B) {
	inner := belfry.Of(func(_ context.Context, req string) (string, error) {
		if req == "slow" {
			<-time.After(5 * time.Millisecond)
		}
		return req, nil
	})
	for _, c := range []struct {
		name string
		cfg  hedge.Config
	}{
		{"none sent, delay", hedge.Config{Delay: time.Hour}},
		{"none sent, delay, a retry deposits", hedge.Config{Delay: time.Hour, NoDeposit: true}},
		{"none sent, delay, detached", hedge.Config{Delay: time.Hour, Detach: true}},
		{"none sent, percentile", hedge.Config{Period: 2 * time.Second, MinSamples: 1}},
		{"nothing known", hedge.Config{Period: time.Hour}},
	} {
		b.Run(c.name, func(b *testing.B) {
			svc := hedge.New(inner, c.cfg)
			if c.cfg.Period == 2*time.Second {
				_, _ = belfry.Do(b.Context(), svc, "slow")
				<-time.After(c.cfg.Period)
			}
			run(b, svc)
			if n := svc.Stats().Hedges; n > 0 {
				b.Errorf("%d hedges", n)
			}
		})
	}
	b.Run("parallel", func(b *testing.B) {
		svc := hedge.New(inner, hedge.Config{Delay: time.Hour})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = belfry.Do(context.Background(), svc, "hello")
			}
		})
	})
	b.Run("one sent, wins", func(b *testing.B) {
		first := true
		svc := hedge.New(belfry.Of(func(ctx context.Context, req string) (string, error) {
			if first = !first; first {
				return req, nil
			}
			<-ctx.Done()
			return "", ctx.Err()
		}), hedge.Config{Delay: time.Nanosecond, Budget: budget.Unlimited()})
		run(b, svc)
	})
}

func run(b *testing.B, svc belfry.Service[string, string]) {
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = belfry.Do(ctx, svc, "hello")
	}
}
