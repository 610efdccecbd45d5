package statetest

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry/budget"
)

// The model keeps the time slot of every success and every extra attempt, for ever, and counts. Time is kept in twenty slots of a
// TTL from the first use; a success counts in its own slot and the nineteen after it, an extra attempt in one more.
type budgetModel struct {
	deposits, extras []int64
	refused          uint64
}

func count(slots []int64, now, last int64) (n float64) {
	for _, slot := range slots {
		if now-slot <= last {
			n++
		}
	}
	return n
}

func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const slot = 50 * time.Millisecond
		cfg := budget.Config{
			TTL:     20 * slot,
			Ratio:   rapid.SampledFrom([]float64{0.1, 0.25, 0.5, 1, 1.7}).Draw(t, "ratio"),
			Reserve: rapid.SampledFrom([]float64{0.4, 1, 3}).Draw(t, "reserve"),
		}
		b, m := budget.New(cfg), &budgetModel{}
		start := time.Unix(1_000_000, 0)
		age, begun := time.Duration(0), false
		now := func() time.Time {
			if !begun { // slots are counted from the first use
				begun, start = true, start.Add(age)
				age = 0
			}
			return start.Add(age)
		}
		balance := func() float64 {
			at := int64(age / slot)
			return cfg.Ratio*count(m.deposits, at, 19) + cfg.Reserve*cfg.TTL.Seconds() - count(m.extras, at, 20)
		}
		t.Repeat(map[string]func(*rapid.T){
			"deposit": func(*rapid.T) {
				b.DepositAt(now())
				m.deposits = append(m.deposits, int64(age/slot))
			},
			"withdraw": func(t *rapid.T) {
				at := now()
				before := balance()
				if got, want := b.WithdrawAt(at), before >= 1-1e-6; got != want {
					t.Fatalf("with a balance of %v: got %v, want %v", before, got, want)
				} else if got {
					m.extras = append(m.extras, int64(age/slot))
				} else {
					m.refused++
				}
			},
			"time passes": func(t *rapid.T) {
				age += time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond
			},
			"a long time passes": func(t *rapid.T) {
				age += time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond
			},
			"": func(t *rapid.T) {
				s := b.StatsAt(now())
				if want := max(0, balance()); math.Abs(s.Balance-want) > 1e-6 {
					t.Fatalf("balance %v, want %v", s.Balance, want)
				}
				if s.Deposits != uint64(len(m.deposits)) || s.Withdrawals != uint64(len(m.extras)) || s.Refused != m.refused {
					t.Fatalf("got %+v, want %d deposits, %d withdrawals, %d refused", s, len(m.deposits), len(m.extras), m.refused)
				}
			},
		})
	})
}
