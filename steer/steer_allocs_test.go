//go:build !race

package steer_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/belfry-go/belfry"
)

func TestAllocs(t *testing.T) {
	ctx := context.Background()
	for name, svc := range services(t, rand.NewPCG(seed, seed)) {
		if n := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(ctx, svc, "a") }); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}
