package breaker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/eject"
)

// guarded returns n breakers of one fleet, and what they stand before.
func guarded(n int, cfg eject.Config) (*eject.Guard, []*service, []*inner) {
	g := eject.New(cfg)
	all, behind := make([]*service, n), make([]*inner, n)
	for i := range all {
		e := g.New()
		e.Join()
		behind[i] = &inner{}
		all[i] = breaker.New(belfry.Of(behind[i].call), with(func(c *breaker.Config) { c.Guard = e }))
	}
	return g, all, behind
}

func TestGuardRail(t *testing.T) {
	ill := func(context.Context, int) (int, error) { return 0, errIll }

	bubble(t, "a breaker stays closed while too many are out, and opens when one is back", func(t *testing.T) {
		g, all, behind := guarded(3, eject.Config{})
		for i, b := range all {
			behind[i].does = ill
			for range 4 {
				_, _ = belfry.Do(t.Context(), b, 1)
			}
		}
		for i, want := range []breaker.State{breaker.Open, breaker.Closed, breaker.Closed} {
			if s := all[i].Stats(); s.State != want || (want == breaker.Closed) != (s.Spared == 3) {
				t.Errorf("breaker %d: %+v", i, s)
			}
		}
		behind[0].does = nil
		after(time.Second) // without jitter
		if _, err := belfry.Do(t.Context(), all[0], 1); err != nil {
			t.Fatal(err)
		}
		if !g.Quiet() {
			t.Error("a closed breaker counts as out")
		}
		_, _ = belfry.Do(t.Context(), all[1], 1)
		if s := all[1].Stats(); s.State != breaker.Open {
			t.Errorf("its next failure leaves it %v", s.State)
		}
	})
	bubble(t, "by hand the last one opens too", func(t *testing.T) {
		g, all, _ := guarded(1, eject.Config{})
		all[0].Trip(time.Minute)
		if s := all[0].Stats(); s.State != breaker.Open || g.Quiet() {
			t.Errorf("%+v", s)
		}
		all[0].Reset()
		if !g.Quiet() {
			t.Error("reset, and out")
		}
	})
	bubble(t, "who has nobody else to ask is let through, and changes nothing", func(t *testing.T) {
		_, all, behind := guarded(1, eject.Config{Keep: -1})
		behind[0].does = ill
		for range 2 {
			_, _ = belfry.Do(t.Context(), all[0], 1)
		}
		if _, err := belfry.Do(t.Context(), all[0], 1); !errors.Is(err, belfry.ErrNotReady) {
			t.Fatalf("got %v, want a refusal", err)
		}
		before := all[0].Stats()
		if _, err := belfry.Do(eject.Panic(t.Context()), all[0], 1); !errors.Is(err, errIll) {
			t.Errorf("got %v, want what the service says", err)
		}
		if after := all[0].Stats(); after != before {
			t.Errorf("%+v became %+v", before, after)
		}
	})
}
