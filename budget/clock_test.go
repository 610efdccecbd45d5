package budget_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/budget"
)

// TestClock mixes the methods that look at the clock with those that are told the time.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, deposit := range map[string]func(*budget.Budget){
			"the clock first":    (*budget.Budget).Deposit,
			"what is told first": func(b *budget.Budget) { b.DepositAt(time.Now()) },
		} {
			b := budget.New(budget.Config{TTL: time.Second, Ratio: 1, NoReserve: true})
			for range 3 {
				deposit(b)
			}
			time.Sleep(time.Second - 1)
			if !b.Withdraw() || !b.WithdrawAt(time.Now()) {
				t.Errorf("%s: a success does not pay at the end of the ttl", name)
			}
			if got := b.Stats().Balance; got != 1 {
				t.Errorf("%s: %v left of three successes", name, got)
			}
			time.Sleep(time.Nanosecond)
			if b.Withdraw() || b.WithdrawAt(time.Now()) {
				t.Errorf("%s: a success pays after the ttl", name)
			}
		}
	})
}
