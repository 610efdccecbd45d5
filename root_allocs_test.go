//go:build !race

package belfry_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
)

func identity(_ context.Context, req int) (int, error) { return req, nil }

// deep returns a function under n layers that pass the permit through.
func deep(n int) belfry.Service[int, int] {
	svc := belfry.Of(identity)
	for range n {
		svc = belfry.MapRequest(svc, func(i int) int { return i })
	}
	return svc
}

func TestAllocs(t *testing.T) {
	ctx := context.Background()
	around := belfry.Around(belfry.Of(identity), func(ctx context.Context, req int, next *belfry.Next[int, int]) (int, error) {
		return next.Call(ctx, req)
	})
	first, retried := &attempt.Context{Context: ctx}, &attempt.Context{Context: ctx}
	retried.Set.Add(new(int))
	for _, c := range []struct {
		name string
		want float64
		f    func()
	}{
		{"Do over a function", 0, func() { _, _ = belfry.Do(ctx, deepest[0], 1) }},
		{"Do over six layers", 0, func() { _, _ = belfry.Do(ctx, deepest[1], 1) }},
		{"TryDo", 0, func() { _, _ = belfry.TryDo(ctx, deepest[1], 1) }},
		{"Reserve", 0, func() {
			r, _ := belfry.Reserve(ctx, deepest[1])
			_, _ = r.Call(ctx, 1)
			r.Release()
		}},
		{"NoWait", 0, func() { _ = belfry.NoWait(ctx) }},
		{"NoWait of NoWait", 0, func() { _ = belfry.NoWait(belfry.NoWait(ctx)) }},
		{"NoWait of a first attempt", 0, func() { kept = belfry.NoWait(first) }},
		{"NoWait of a request with attempts", 1, func() { kept = belfry.NoWait(retried) }},
		{"Around", 1, func() { _, _ = belfry.Do(ctx, around, 1) }},
	} {
		if got := testing.AllocsPerRun(200, c.f); got != c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, got, c.want)
		}
	}
}

var (
	deepest = [2]belfry.Service[int, int]{deep(0), deep(6)}
	kept    context.Context
)
