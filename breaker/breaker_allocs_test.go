//go:build !race

package breaker_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/limit"
)

// A closed breaker passes permits on, over whatever remembers something too.
func TestAllocs(t *testing.T) {
	ctx := t.Context()
	for name, cfg := range map[string]breaker.Config{"in a row": {}, "a ratio": {Ratio: 0.5}} {
		plain := breaker.New(belfry.Of(echo), cfg)
		limited := breaker.New(limit.NewConcurrency(belfry.Of(echo), limit.NewLimiter(1)), cfg)
		stateful := breaker.New(&stateful{belfry.Of(echo)}, cfg)
		for inner, svc := range map[string]*breaker.Service[int, int]{"a function": plain, "a limit": limited, "permits that remember": stateful} {
			for what, f := range map[string]func(){
				"a call":        func() { _, _ = belfry.Do(ctx, svc, 1) },
				"a reservation": func() { permit, _ := svc.Acquire(ctx); svc.Release(permit) },
			} {
				if n := testing.AllocsPerRun(200, f); n != 0 {
					t.Errorf("%s, %s over %s: %v allocations, want none", name, what, inner, n)
				}
			}
		}
	}
	ill := breaker.New(belfry.Of(echo), breaker.Config{Consecutive: 1 << 30}, belfry.Semantics[int, int]{
		Classify: func(int, error) belfry.Outcome { return belfry.Outcome{Kind: belfry.Failure} },
	})
	if n := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(ctx, ill, 1) }); n != 0 {
		t.Errorf("a failure without an error: %v allocations, want none", n)
	}
}

// An open breaker is asked often. All that a refusal costs is the error.
func TestAllocsRefusal(t *testing.T) {
	for name, cfg := range map[string]breaker.Config{"it refuses": {Consecutive: 1}, "it waits": {Consecutive: 1, Wait: true}} {
		svc := breaker.New(belfry.Of(func(context.Context, int) (int, error) { return 0, errIll }), cfg)
		_, _ = belfry.Do(t.Context(), svc, 1)
		svc.Trip(time.Hour)
		ctx := belfry.NoWait(t.Context())
		if n := testing.AllocsPerRun(200, func() { _, _ = svc.Acquire(ctx) }); n > 1 {
			t.Errorf("%s: %v allocations, want at most 1", name, n)
		}
		if s := svc.Stats(); s.Refused != 201 {
			t.Errorf("%s: %d were refused, want 201", name, s.Refused)
		}
	}
}

// A stateful service grants permits that remember it.
type stateful struct{ belfry.Service[int, int] }

func (s *stateful) Acquire(context.Context) (belfry.Permit, error) { return belfry.NewPermit(s), nil }
