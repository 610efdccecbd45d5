//go:build !race

package balance_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/load"
)

func TestAllocs(t *testing.T) {
	stream := belfry.Semantics[int, int]{Until: func(res int, done func()) int { done(); return res }}
	for _, c := range []struct {
		name string
		cfg  balance.Config
		dial func() service
		sem  []belfry.Semantics[int, int]
		want float64
	}{
		{"endpoints with nothing to remember, Expected", balance.Config{}, echo, nil, 0},
		{"endpoints with nothing to remember, Pending", balance.Config{Load: load.Pending{}}, echo, nil, 0},
		{"decisions that are kept", balance.Config{Decisions: 100}, echo, nil, 0},
		{"endpoints with something to remember", balance.Config{}, func() service { return remembering{echo()} }, nil, 1},
		{"streamed responses", balance.Config{}, echo, []belfry.Semantics[int, int]{stream}, 1},
	} {
		b := ready(t, 3, c.cfg, c.dial, c.sem...)
		ctx := context.Background()
		got := testing.AllocsPerRun(200, func() {
			if _, err := belfry.Do(ctx, b, 1); err != nil {
				t.Error(err)
			}
			if _, err := belfry.TryDo(ctx, b, 1); err != nil {
				t.Error(err)
			}
		})
		if got/2 != c.want {
			t.Errorf("%s: %v allocations a call, want %v", c.name, got/2, c.want)
		}
	}
	t.Run("attempts", func(t *testing.T) {
		b := ready(t, 3, balance.Config{}, echo)
		// The first needs its context, and the next in addition a context that does not let endpoints wait but knows the attempts,
		// and a place in their set.
		for tried, want := range []float64{1, 3} {
			got := testing.AllocsPerRun(200, func() {
				ctx := &attempt.Context{Context: context.Background()}
				for range tried {
					ctx.Set.Add(b)
				}
				if _, err := belfry.Do(ctx, b, 1); err != nil {
					t.Error(err)
				}
			})
			if got != want {
				t.Errorf("attempt %d: %v allocations, want %v", tried+1, got, want)
			}
		}
	})
	t.Run("a refusal", func(t *testing.T) {
		b := ready(t, 3, balance.Config{}, func() service { return &once{service: echo()} })
		ctx := belfry.NoWait(context.Background())
		got := testing.AllocsPerRun(200, func() {
			if _, err := b.Acquire(ctx); err == nil {
				t.Error("there was room")
			}
		})
		if got != 1 {
			t.Errorf("%v allocations, want 1, the error", got)
		}
	})
}
