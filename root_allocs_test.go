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
	lazy := belfry.NewLazy(func(context.Context) (belfry.Service[int, int], error) { return belfry.Of(identity), nil })
	defer lazy.Close()
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
		{"Lazy", 0, func() { _, _ = belfry.Do(ctx, lazy, 1) }},
		{"Optional", 0, func() { _, _ = belfry.Do(ctx, belfry.Optional(deepest[0]), 1) }},
	} {
		if got := testing.AllocsPerRun(200, c.f); got != c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, got, c.want)
		}
	}
}

// A call of CallAll costs what its documentation says, roughly.
func TestAllocsCallAll(t *testing.T) {
	const calls = 100
	inputs := func(yield func(int) bool) {
		for i := range calls {
			if !yield(i) {
				return
			}
		}
	}
	ctx := context.WithValue(t.Context(), new(int), "as a context of a real program is")
	got := testing.AllocsPerRun(20, func() {
		for r := range belfry.CallAll(ctx, deepest[0], inputs, 8) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
	})
	t.Logf("%v allocations for %d calls", got, calls)
	if got > 12*calls {
		t.Errorf("%v allocations for %d calls, want at most 12 each", got, calls)
	}
}

var (
	deepest = [2]belfry.Service[int, int]{deep(0), deep(6)}
	kept    context.Context
)
