//go:build !race

package buffer_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/internal/attempt"
)

func TestAllocsBuffer(t *testing.T) {
	for _, cfg := range []buffer.Config{{}, {MaxWait: time.Second}, {Order: buffer.LIFO}, {Order: buffer.CoDel}} {
		ctx := t.Context()
		svc := buffer.New(belfry.Of(length), 1, cfg)
		first, later := &attempt.Context{Context: ctx}, &attempt.Context{Context: ctx}
		later.Set.Add(new(int))
		for _, c := range []struct {
			name string
			f    func()
			want float64
		}{
			{"a call", func() { _, _ = belfry.Do(ctx, svc, "") }, 0},
			{"a call under NoWait", func() { _, _ = belfry.TryDo(ctx, svc, "") }, 0},
			{"a reservation", func() { permit, _ := svc.Acquire(ctx); svc.Release(permit) }, 0},
			{"a first attempt", func() { _, _ = belfry.Do(first, svc, "") }, 0},
			{"a later attempt", func() { _, _ = belfry.Do(later, svc, "") }, 1},
		} {
			if n := testing.AllocsPerRun(200, c.f); n != c.want {
				t.Errorf("%+v, %s: %v allocations, want %v", cfg, c.name, n, c.want)
			}
		}
	}
}
