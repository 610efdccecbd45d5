package budget_test

import (
	"sync"
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

// TestPending looks at successes that nobody looks at the clock for.
func TestPending(t *testing.T) {
	t.Run("none is lost or counted twice", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := budget.New(budget.Config{TTL: time.Second, Ratio: 1, NoReserve: true})
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for i := range 3000 {
						b.Deposit()
						if i%100 == 0 {
							time.Sleep(time.Millisecond)
						}
					}
				})
			}
			wg.Go(func() {
				for range 100 {
					b.Withdraw()
					b.DepositAt(time.Now())
					time.Sleep(300 * time.Microsecond)
				}
			})
			wg.Wait()
			s := b.Stats()
			if s.Deposits != 12_100 || s.Balance != float64(s.Deposits-s.Withdrawals) {
				t.Errorf("%+v after 12100 successes", s)
			}
		})
	})

	t.Run("each counts for as long as it should", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, ttl := range []time.Duration{time.Millisecond, time.Second} { // without timers, and with them
				b := budget.New(budget.Config{TTL: ttl, Ratio: 1, NoReserve: true})
				for range 60 {
					b.Deposit()
					time.Sleep(ttl / 30)
				}
				time.Sleep(time.Nanosecond)
				if got := b.Stats().Balance; got < 28 || got > 30 {
					t.Errorf("ttl %v: %v successes count, of 30 in the last ttl", ttl, got)
				}
			}
		})
	})

	t.Run("a timer that was lost with a bubble costs little", func(t *testing.T) {
		b := budget.New(budget.Config{TTL: time.Second, Ratio: 1, NoReserve: true})
		for range 2 { // each ends with a timer that never fires
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(10 * time.Second)
				b.Deposit()
			})
		}
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Minute)
			for range 1000 {
				b.Deposit()
			}
			if got := b.Stats().Balance; got < 1000-255 || got > 1000 {
				t.Errorf("%v of 1000 successes count", got)
			}
			time.Sleep(time.Second)
			if got := b.Stats().Balance; got != 0 {
				t.Errorf("%v successes count after the ttl", got)
			}
		})
	})
}
