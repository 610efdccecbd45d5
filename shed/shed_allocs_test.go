//go:build !race

package shed_test

import (
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/shed"
)

func TestAllocs(t *testing.T) {
	svc := shed.New(belfry.Of(echo))
	ctx := t.Context()
	if n := testing.AllocsPerRun(200, func() { _, _ = belfry.Do(ctx, svc, "") }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
