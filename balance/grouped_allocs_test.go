//go:build !race

package balance_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
)

func TestAllocsInGroups(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  balance.Config
		ctx  context.Context
	}{
		{"a key", balance.Config{ByKey: true}, keyed(1)},
		{"no key", balance.Config{ByKey: true}, context.Background()},
	} {
		b := ready(t, 3, c.cfg, echo)
		got := testing.AllocsPerRun(200, func() {
			if _, err := belfry.Do(c.ctx, b, 1); err != nil {
				t.Error(err)
			}
		})
		if got != 0 {
			t.Errorf("%s: %v allocations a call, want 0", c.name, got)
		}
	}
}
