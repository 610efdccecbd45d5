package budget_test

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/budget"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// at returns the time that is so many milliseconds after the epoch.
func at(ms float64) time.Time { return epoch.Add(time.Duration(ms * float64(time.Millisecond))) }

// granted returns how many of n withdrawals at now are paid for.
func granted(b *budget.Budget, now time.Time, n int) (paid int) {
	for range n {
		if b.WithdrawAt(now) {
			paid++
		}
	}
	return paid
}

func TestValidate(t *testing.T) {
	for _, cfg := range []budget.Config{
		{},
		{TTL: time.Millisecond, NoRatio: true, NoReserve: true},
		{TTL: time.Hour, Ratio: 1000, Reserve: 1e9},
		{NoRatio: true, Reserve: 1},
		{NoReserve: true, Ratio: 1},
	} {
		if err := cfg.Validate(); err != nil {
			t.Errorf("%+v is refused: %v", cfg, err)
		}
	}
	for want, cfg := range map[string]budget.Config{
		"budget: ttl must be within 1ms and 1h, got -1s":              {TTL: -time.Second},
		"budget: ttl must be within 1ms and 1h, got 999.999µs":        {TTL: time.Millisecond - 1},
		"budget: ttl must be within 1ms and 1h, got 1h0m0.000000001s": {TTL: time.Hour + 1},
		"budget: ratio must be at least 0 and finite, got -0.1":       {Ratio: -0.1},
		"budget: ratio must be at least 0 and finite, got NaN":        {Ratio: math.NaN()},
		"budget: ratio must be at least 0 and finite, got +Inf":       {Ratio: math.Inf(1)},
		"budget: reserve must be at least 0 and finite, got -1":       {Reserve: -1},
		"budget: reserve must be at least 0 and finite, got NaN":      {Reserve: math.NaN()},
		"budget: reserve must be at least 0 and finite, got -Inf":     {Reserve: math.Inf(-1)},
		"budget: reserve must be at least 0 and finite, got +Inf":     {Reserve: math.Inf(1)},
		"budget: ratio must be 0 with NoRatio, got 0.5":               {NoRatio: true, Ratio: 0.5},
		"budget: reserve must be 0 with NoReserve, got 3":             {NoReserve: true, Reserve: 3},
		"budget: ratio must be at least 0 and finite, got -1":         {NoRatio: true, Ratio: -1},
	} {
		if err := cfg.Validate(); err == nil || err.Error() != want {
			t.Errorf("%+v: got %v, want %s", cfg, err, want)
		}
		func() {
			defer func() {
				if got := recover(); fmt.Sprint(got) != want {
					t.Errorf("New(%+v) panicked with %v, want %v", cfg, got, want)
				}
			}()
			budget.New(cfg)
		}()
	}
}

func TestSmall(t *testing.T) {
	t.Run("RT11 nothing deposited, nothing to withdraw", func(t *testing.T) {
		b := budget.New(budget.Config{TTL: time.Second, Ratio: 1, NoReserve: true})
		if b.WithdrawAt(at(0)) {
			t.Error("paid from nothing")
		}
	})
	t.Run("RT12 a success is forgotten", func(t *testing.T) {
		b := budget.New(budget.Config{TTL: time.Second, Ratio: 1, NoReserve: true})
		b.DepositAt(at(0))
		if b.WithdrawAt(at(3000)) {
			t.Error("paid from a success that is three ttl old")
		}
	})
	t.Run("RT13 each success is forgotten in its own time", func(t *testing.T) {
		b := budget.New(budget.Config{TTL: time.Second, Ratio: 0.5, NoReserve: true})
		b.DepositAt(at(0))
		b.DepositAt(at(0))
		if !b.WithdrawAt(at(901)) {
			t.Error("two successes at 0.5 do not pay for one")
		}
		b.DepositAt(at(2902))
		b.DepositAt(at(3203))
		b.DepositAt(at(4004))
		if got := granted(b, at(4004), 3); got != 1 {
			t.Errorf("two live successes of three paid for %d, want 1", got)
		}
	})
	t.Run("RT14 the reserve needs no success", func(t *testing.T) {
		b := budget.New(budget.Config{TTL: time.Second, Ratio: 1, Reserve: 5})
		if got := granted(b, at(0), 9); got != 5 {
			t.Errorf("the reserve paid for %d, want 5", got)
		}
	})
	t.Run("S3 the default allows 100 at once, then none for 10 s unless successes deposit", func(t *testing.T) {
		b := budget.New(budget.Config{})
		if got := granted(b, at(0), 1000); got != 100 {
			t.Fatalf("at once: %d, want 100", got)
		}
		for ms := 100.0; ms <= 10_000; ms += 100 {
			if b.WithdrawAt(at(ms)) {
				t.Fatalf("one more after %vms", ms)
			}
		}
		if got := granted(b, at(10_500), 1000); got != 100 {
			t.Errorf("after the ttl: %d, want 100", got)
		}
		for range 50 {
			b.DepositAt(at(11_000))
		}
		if got := granted(b, at(11_000), 1000); got != 10 {
			t.Errorf("after 50 successes: %d, want 10", got)
		}
	})
	t.Run("X11 D35 fractions pay for what they say", func(t *testing.T) {
		for ratio, want := range map[float64]int{0.3: 300, 0.4: 400, 0.51: 510, 0.6: 600, 0.99: 990, 1: 1000, 1.7: 1700, 0.29: 290, 0.001: 1} {
			b := budget.New(budget.Config{Ratio: ratio, NoReserve: true})
			for range 1000 {
				b.DepositAt(at(0))
			}
			if got := granted(b, at(0), 3000); got != want {
				t.Errorf("1000 successes at %v paid for %d, want %d", ratio, got, want)
			}
		}
	})
	t.Run("X11 D35 rounding takes nothing away", func(t *testing.T) {
		b := budget.New(budget.Config{Ratio: 0.29, NoReserve: true})
		for range 100 {
			b.DepositAt(at(0))
		}
		if got := granted(b, at(0), 100); got != 29 {
			t.Errorf("100 successes at 0.29 paid for %d, want 29", got)
		}
	})
	t.Run("D37 the reserve counts parts of a second", func(t *testing.T) {
		b := budget.New(budget.Config{TTL: 1900 * time.Millisecond, NoRatio: true, Reserve: 5})
		if got := granted(b, at(0), 20); got != 9 {
			t.Errorf("9.5 paid for %d, want 9", got)
		}
	})
	t.Run("an extra attempt counts for a whole ttl, also of one that slots do not divide", func(t *testing.T) {
		ttl := time.Millisecond + 19
		b := budget.New(budget.Config{TTL: ttl, NoRatio: true, Reserve: 1 / ttl.Seconds()})
		b.StatsAt(epoch)
		last := epoch.Add(50_000 - 1) // the end of the first slot, if a slot were 50 µs
		if !b.WithdrawAt(last) {
			t.Fatal("the reserve does not pay for one")
		}
		if b.WithdrawAt(last.Add(ttl)) {
			t.Error("the reserve paid for two in one ttl")
		}
	})
	t.Run("unlimited refuses nothing and counts", func(t *testing.T) {
		b := budget.Unlimited()
		if got := granted(b, at(0), 5000); got != 5000 {
			t.Errorf("paid for %d of 5000", got)
		}
		if got, want := b.StatsAt(at(0)), (budget.Stats{Unlimited: true, Withdrawals: 5000}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
	t.Run("stats", func(t *testing.T) {
		b := budget.New(budget.Config{TTL: time.Second, Ratio: 0.5, Reserve: 2})
		for range 5 {
			b.DepositAt(at(0))
		}
		granted(b, at(0), 7)
		if got, want := b.StatsAt(at(0)), (budget.Stats{Balance: 0.5, Deposits: 5, Withdrawals: 4, Refused: 3}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got := b.StatsAt(at(2000)).Balance; got != 2 {
			t.Errorf("balance after all is forgotten: %v, want the reserve of 2", got)
		}
	})
	t.Run("time that runs backwards stands still", func(t *testing.T) {
		b := budget.New(budget.Config{TTL: time.Second, Ratio: 1, NoReserve: true})
		b.DepositAt(at(5000))
		if !b.WithdrawAt(at(10)) {
			t.Error("a success was forgotten because time ran backwards")
		}
		b.DepositAt(at(10)) // counts as made at 5000
		if b.StatsAt(at(5900)).Balance != 1 {
			t.Error("a success recorded late was forgotten early")
		}
	})
}

// A success lives as long whether the budget is asked once or every millisecond.
func TestCadence(t *testing.T) {
	const ttl = 1000.0
	for _, every := range []float64{1, 7, 49, 50, 51, 100, 101, 150, 333, 500, 999} {
		t.Run(fmt.Sprintf("X11 D36 a success asked about every %v ms counts for 95 to 100 %% of the ttl", every), func(t *testing.T) {
			for phase := 0.0; phase < 100; phase += 3.7 {
				b := budget.New(budget.Config{TTL: time.Second, Ratio: 1, NoReserve: true})
				b.StatsAt(at(0))
				b.DepositAt(at(phase))
				for age := 0.0; age <= ttl+2*every; age += every {
					live := b.StatsAt(at(phase+age)).Balance == 1
					if age <= ttl*0.95 && !live || age >= ttl && live {
						t.Fatalf("phase %v: at an age of %v ms it counts: %v", phase, age, live)
					}
				}
			}
		})
	}
}

func TestConcurrent(t *testing.T) {
	t.Run("X11 D39 two at once do not share what is there for one", func(t *testing.T) {
		for range 200 {
			b := budget.New(budget.Config{Ratio: 1, NoReserve: true})
			for range 3 {
				b.DepositAt(epoch)
			}
			var paid atomic.Int64
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if b.WithdrawAt(epoch) {
						paid.Add(1)
					}
				})
			}
			wg.Wait()
			if paid.Load() != 3 {
				t.Fatalf("3 successes paid for %d", paid.Load())
			}
		}
	})
}

// A day of slots of 50 ms is 1.7 million of them. Going through them one by one takes milliseconds, a thousand times over
// that is seconds: far from what the bound allows, on any machine.
func TestIdle(t *testing.T) {
	t.Run("X11 D38 a long idle time costs nothing", func(t *testing.T) {
		b := budget.New(budget.Config{TTL: time.Second, Ratio: 1, NoReserve: true})
		now := epoch
		begin := time.Now()
		for range 1000 {
			b.DepositAt(now)
			now = now.Add(365 * 24 * time.Hour / 10)
			if b.WithdrawAt(now) {
				t.Fatal("a success was remembered")
			}
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("1000 idle times took %v", took)
		}
	})
}
