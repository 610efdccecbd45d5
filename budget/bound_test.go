package budget_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/budget"
)

// An event is what a budget was asked for at an age of the test.
type event struct {
	at   time.Duration
	paid bool // a withdrawal that was paid for; else a success
}

// count returns how many of log, from its end, are no older than span, withdrawals or successes.
func count(log []event, now, span time.Duration, paid bool) (n int) {
	for i := len(log) - 1; i >= 0 && now-log[i].at <= span; i-- {
		if log[i].paid == paid {
			n++
		}
	}
	return n
}

// TestBound goes through times that are told, and through those of a clock, whose timers are in time.
func TestBound(t *testing.T) {
	t.Run("told", func(t *testing.T) { bound(t, 150, told{epoch}) })
	t.Run("clock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { bound(t, 60, &looks{began: time.Now()}) })
	})
}

// A teller asks a budget at an age of the test.
type teller interface {
	deposit(b *budget.Budget, age time.Duration)
	withdraw(b *budget.Budget, age time.Duration) bool
	begin()
}

type told struct{ began time.Time }

func (w told) begin()                                      {}
func (w told) deposit(b *budget.Budget, age time.Duration) { b.DepositAt(w.began.Add(age)) }
func (w told) withdraw(b *budget.Budget, age time.Duration) bool {
	return b.WithdrawAt(w.began.Add(age))
}

type looks struct{ began time.Time }

func (w *looks) begin() { w.began = time.Now() }

func (w *looks) deposit(b *budget.Budget, age time.Duration) {
	time.Sleep(time.Until(w.began.Add(age)))
	b.Deposit()
}

func (w *looks) withdraw(b *budget.Budget, age time.Duration) bool {
	time.Sleep(time.Until(w.began.Add(age)))
	return b.Withdraw()
}

// bound looks only at the spans that end with an extra attempt: any other span of a ttl holds no more extra
// attempts than the one that ends with the last of them.
func bound(t *testing.T, rounds int, ask teller) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var paid, refused int
	for round := range rounds {
		ttl := time.Millisecond + time.Duration(r.Int64N(int64(20*time.Second))>>r.IntN(12))
		cfg := budget.Config{TTL: ttl, Ratio: r.Float64() * 2, Reserve: r.Float64() * 20 / ttl.Seconds()}
		if r.IntN(3) == 0 {
			cfg.Reserve, cfg.NoReserve = 0, true
		}
		reserve := cfg.Reserve * ttl.Seconds()
		b := budget.New(cfg)
		ask.begin()
		var (
			log []event
			now time.Duration
		)
		for range 1500 {
			switch r.IntN(12) {
			case 0: // a pause of a fraction of ttl
				now += time.Duration(r.Int64N(int64(ttl)/3 + 1))
			case 1: // from one slot's edge to the next, give or take a nanosecond
				now += ttl/20 + time.Duration(r.IntN(3)-1)
			case 2:
				if r.IntN(30) == 0 { // long idle
					now += time.Duration(r.Int64N(int64(5 * ttl)))
				}
			case 3, 4, 5, 6:
				ask.deposit(b, now)
				log = append(log, event{at: now})
			default:
				before := count(log, now, ttl, true)
				if ask.withdraw(b, now) {
					paid++
					log = append(log, event{at: now, paid: true})
					if most := cfg.Ratio*float64(count(log, now, ttl, false)) + reserve; float64(before+1) > most+1e-6 {
						t.Fatalf("round %d, %+v: %d extra attempts in the ttl that ends at %v, at most %.3f", round, cfg, before+1, now, most)
					}
					continue
				}
				refused++
				// What is live by the shortest count, less what was taken by the longest, must not have been enough.
				live, taken := count(log, now, ttl*94/100, false), count(log, now, ttl*106/100, true)
				if have := cfg.Ratio*float64(live) + reserve - float64(taken); have >= 1+1e-6 {
					t.Fatalf("round %d, %+v: refused at %v with at least %.3f left", round, cfg, now, have)
				}
			}
		}
	}
	if paid < 70*rounds || refused < 70*rounds {
		t.Errorf("%d paid, %d refused: too few of one to have tried much", paid, refused)
	}
}
