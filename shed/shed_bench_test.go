package shed_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/shed"
)

func echo(_ context.Context, req string) (string, error) { return req, nil }

func BenchmarkShed(b *testing.B) {
	for name, svc := range map[string]belfry.Service[string, string]{
		"admitted":              shed.New(belfry.Of(echo)),
		"admitted over a limit": shed.New(limit.NewConcurrency(belfry.Of(echo), limit.NewLimiter(1))),
		"refused":               shed.New[string, string](door{err: &belfry.Rejection{Layer: "limit", Err: belfry.ErrNotReady}}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = belfry.Do(b.Context(), svc, "")
			}
		})
	}
}
