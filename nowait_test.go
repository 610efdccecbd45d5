package belfry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
)

func TestNoWait(t *testing.T) {
	nw := belfry.NoWait(t.Context())
	select {
	case <-nw.Done():
	default:
		t.Error("not done")
	}
	t.Run("survives derived contexts", func(t *testing.T) {
		type key struct{}
		d1, cancel1 := context.WithTimeout(context.WithValue(nw, key{}, 1), time.Hour)
		defer cancel1()
		d2, cancel2 := context.WithCancel(d1)
		defer cancel2()
		if !errors.Is(d2.Err(), belfry.ErrNotReady) {
			t.Errorf("got %v", d2.Err())
		}
		if again := belfry.NoWait(d2); again != d2 {
			t.Error("marked a second time")
		}
	})
	t.Run("asks a context for values only, unless it is marked", func(t *testing.T) {
		asked := 0
		belfry.NoWait(asks{t.Context(), &asked})
		if asked != 0 {
			t.Errorf("Err was asked for %d times", asked)
		}
	})
	t.Run("is made of values that have outlived it", func(t *testing.T) {
		alive := context.WithoutCancel(nw)
		if got := belfry.NoWait(alive); !errors.Is(got.Err(), belfry.ErrNotReady) {
			t.Errorf("got %v", got.Err())
		}
	})
	t.Run("keeps the attempt set and no other value", func(t *testing.T) {
		type key struct{}
		ctx := &attempt.Context{Context: context.WithValue(t.Context(), key{}, 1)}
		if got := belfry.NoWait(ctx); attempt.From(got) != nil {
			t.Error("an empty set was kept")
		}
		ctx.Set.Add(new(int))
		got := belfry.NoWait(ctx)
		if attempt.From(got) != &ctx.Set || got.Value(key{}) != nil {
			t.Errorf("set %p want %p, value %v", attempt.From(got), &ctx.Set, got.Value(key{}))
		}
	})
}

// asks counts how often it is asked for its error, which may cost a look at the clock.
type asks struct {
	context.Context
	n *int
}

func (a asks) Err() error { *a.n++; return a.Context.Err() }
