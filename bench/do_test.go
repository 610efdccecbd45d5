package bench

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
)

// through is a layer that does nothing, written by hand.
type through struct{ inner service }

func (s *through) Acquire(ctx context.Context) (belfry.Permit, error) { return s.inner.Acquire(ctx) }

func (s *through) Call(ctx context.Context, permit belfry.Permit, n int) (int, error) {
	return s.inner.Call(ctx, permit, n)
}

func (s *through) Release(permit belfry.Permit) { s.inner.Release(permit) }

// handler is the layer without readiness that everybody has written once.
type handler func(context.Context, int) (int, error)

func (h handler) pass() handler {
	return func(ctx context.Context, n int) (int, error) { return h(ctx, n) }
}

// BenchmarkDo is what it costs to call through nothing, and through five layers that do nothing.
func BenchmarkDo(b *testing.B) {
	for name, f := range map[string]handler{"success": echo, "failure": fail} {
		chain := f
		var layered service = belfry.Of(f)
		for range 5 {
			chain, layered = chain.pass(), &through{layered}
		}
		run := compare
		if name == "failure" {
			run = compareFailing
		}
		run(b, name,
			contender{"function", func(ctx context.Context) error { _, err := f(ctx, 1); return err }},
			ours(belfry.Of(f)),
		)
		run(b, name+",five-layers",
			contender{"functions", func(ctx context.Context) error { _, err := chain(ctx, 1); return err }},
			ours(layered),
		)
	}
}
