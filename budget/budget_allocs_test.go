//go:build !race

package budget_test

import (
	"testing"

	"github.com/belfry-go/belfry/budget"
)

func TestAllocs(t *testing.T) {
	b := budget.New(budget.Config{})
	if got := testing.AllocsPerRun(1000, func() {
		b.Deposit()
		b.Withdraw()
	}); got != 0 {
		t.Errorf("a deposit and a withdrawal allocate %v times, want 0", got)
	}
}
