//go:build !race

package stack_test

import (
	"testing"

	"github.com/belfry-go/belfry"
)

// A call of a client costs what timeout and retry say: one allocation each, and nothing for the other layers or the balancer.
func TestAllocs(t *testing.T) {
	ctx := t.Context()
	for name, svc := range map[string]belfry.Service[int, int]{
		"over a function":      client(t, belfry.Of(double)),
		"over three endpoints": client(t, replicas(t)),
	} {
		if n := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(ctx, svc, 1) }); n != 2 {
			t.Errorf("%s: %v allocations, want 2", name, n)
		}
	}
}
