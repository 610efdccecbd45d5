//go:build !race

package filter_test

import (
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/filter"
)

func TestAllocs(t *testing.T) {
	svc := filter.New(belfry.Of(accept), accept)
	ctx := t.Context()
	if n := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(ctx, svc, "") }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
