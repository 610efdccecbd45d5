package bench

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
)

// work computes for about a microsecond. It counts steps, not time: one that looks at the clock would be done sooner when
// it was interrupted.
func work(_ context.Context, n int) (int, error) {
	x := uint64(n) | 1
	for range 500 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return int(x), nil
}

// worker is work through a variable: inlined, most of it would go because nobody looks at the answer.
var worker = work

// BenchmarkScaling is for comparing one processor with two: what work alone gains by the second, and what it gains
// behind a balancer of 100 endpoints.
func BenchmarkScaling(b *testing.B) {
	svc := balanced(b, 100, 100, balance.Config{}, belfry.Of(work))
	alone := func(ctx context.Context) error { _, err := worker(ctx, 1); return err }
	b.Run("none/parallel/function", func(b *testing.B) { parallel(b, true, alone) })
	b.Run("balance/parallel/belfry", func(b *testing.B) { parallel(b, true, ours(svc).do) })
}
