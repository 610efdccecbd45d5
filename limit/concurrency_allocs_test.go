//go:build !race

package limit_test

import (
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

func TestAllocsConcurrency(t *testing.T) {
	ctx := t.Context()
	svc := limit.NewConcurrency(belfry.Of(length), limit.NewLimiter(1))
	streamed := limit.NewConcurrency(belfry.Of(reopen), limit.NewLimiter(1), belfry.Semantics[string, *stream]{
		Until: func(s *stream, done func()) *stream { done(); return s },
	})
	for name, f := range map[string]func(){
		"a call":          func() { _, _ = belfry.Do(ctx, svc, "") },
		"a streamed call": func() { _, _ = belfry.Do(ctx, streamed, "") },
		"a reservation":   func() { permit, _ := svc.Acquire(ctx); svc.Release(permit) },
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}
