package gcra_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/gcra"
)

// taken returns when tokens are taken by one who takes all there are at each of times.
func taken(r gcra.Rate, times ...time.Duration) (n []int) {
	b := gcra.Full()
	for _, now := range times {
		count := 0
		for r.Take(&b, now) {
			count++
		}
		n = append(n, count)
	}
	return n
}

// Whoever takes tokens when they are due gets three a second, to the nanosecond, for ever. (With a burst of one the pauses
// are never shorter than a third, so what is lost by rounding is lost.)
func TestThirds(t *testing.T) {
	r := gcra.New(3, time.Second, 2)
	b := gcra.Full()
	start := time.Duration(-5e18) // any beginning will do
	for i := range 300_000 {
		due := start + time.Duration((int64(max(i-1, 0))*1e9+2)/3)
		if i > 1 && r.Take(&b, due-1) {
			t.Fatalf("token %d came a nanosecond early", i)
		}
		if !r.Take(&b, due) {
			t.Fatalf("token %d is late by %v", i, r.Wait(&b, due, 0))
		}
	}
}

func TestBurst(t *testing.T) {
	got := taken(gcra.New(10, time.Second, 4), 0, 99*time.Millisecond, 100*time.Millisecond, 399*time.Millisecond, 400*time.Millisecond, time.Hour)
	want := []int{4, 0, 1, 2, 1, 4}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// A model is the same bucket in rational numbers: it holds level tokens at the time at.
type model struct {
	level, rate, burst *big.Rat
	at                 time.Duration
}

func (m *model) advance(now time.Duration) {
	gain := new(big.Rat).Mul(m.rate, new(big.Rat).SetInt64(int64(now-m.at)))
	m.level.Add(m.level, gain)
	if m.level.Cmp(m.burst) > 0 {
		m.level.Set(m.burst)
	}
	m.at = now
}

func (m *model) take(now time.Duration) bool {
	m.advance(now)
	one := big.NewRat(1, 1)
	if m.level.Cmp(one) < 0 {
		return false
	}
	m.level.Sub(m.level, one)
	return true
}

func (m *model) free() int {
	return int(new(big.Int).Quo(m.level.Num(), m.level.Denom()).Int64())
}

// wait is ceil((1 + ahead - level) / rate), at least 0.
func (m *model) wait(ahead int) time.Duration {
	missing := new(big.Rat).Sub(new(big.Rat).SetInt64(int64(1+ahead)), m.level)
	missing.Quo(missing, m.rate)
	if missing.Sign() <= 0 {
		return 0
	}
	n, rest := new(big.Int).QuoRem(missing.Num(), missing.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	return time.Duration(n.Int64())
}

func TestAgainstRationals(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		tokens, per, burst := 1+rng.IntN(1000), time.Duration(1+rng.Int64N(1e10)), 1+rng.IntN(20)
		r, b := gcra.New(tokens, per, burst), gcra.Full()
		m := &model{rate: big.NewRat(int64(tokens), int64(per)), burst: big.NewRat(int64(burst), 1), level: big.NewRat(int64(burst), 1)}
		now := time.Duration(0)
		for range 200 {
			now += time.Duration(rng.Int64N(1 + int64(per)*2/int64(tokens)))
			if got, want := r.Take(&b, now), m.take(now); got != want {
				t.Fatalf("seed %d: %d per %v, burst %d, at %v: taken %v, want %v", seed, tokens, per, burst, now, got, want)
			}
			ahead := rng.IntN(3)
			if got, want := r.Wait(&b, now, ahead), m.wait(ahead); got != want {
				t.Fatalf("seed %d: wait behind %d: %v, want %v", seed, ahead, got, want)
			}
			if got, want := r.Free(&b, now), m.free(); got != want {
				t.Fatalf("seed %d: %d free, want %d", seed, got, want)
			}
			if got, want := b.IsFull(now), m.level.Cmp(m.burst) == 0; got != want {
				t.Fatalf("seed %d: full %v, want %v", seed, got, want)
			}
			if w := r.Wait(&b, now, 0); w > 0 && rng.IntN(4) == 0 {
				early, late := b, b
				if r.Take(&early, now+w-1) || !r.Take(&late, now+w) {
					t.Fatalf("seed %d: a wait of %v is not exact", seed, w)
				}
			}
		}
	}
}

func TestRefund(t *testing.T) {
	r, b := gcra.New(1, time.Second, 2), gcra.Full()
	r.Take(&b, 0)
	period := b.Period()
	r.Take(&b, 0)
	if !r.Refund(&b, 1, period) || r.Free(&b, 1) != 1 {
		t.Errorf("not given back: %d free", r.Free(&b, 1))
	}
	if r.Refund(&b, time.Second, period) {
		t.Error("given back although the bucket is full")
	}
	r.Take(&b, time.Minute)
	if r.Refund(&b, time.Minute, period) || r.Free(&b, time.Minute) != 1 {
		t.Error("given back although the bucket was full since")
	}
	if got := b.FullAt(); got != time.Minute+time.Second {
		t.Errorf("full at %v", got)
	}
}

func TestMove(t *testing.T) {
	slow, fast := gcra.New(1, time.Second, 5), gcra.New(100, time.Second, 3)
	b := gcra.Full()
	r := slow
	if b = fast.Move(&r, b, 0); fast.Free(&b, 0) != 3 {
		t.Error("a full bucket is not full by another rate")
	}
	b = gcra.Full()
	for range 2 {
		slow.Take(&b, 0)
	}
	if b = fast.Move(&slow, b, 0); fast.Free(&b, 0) != 1 {
		t.Errorf("%d free, want 1", fast.Free(&b, 0))
	}
	fast.Take(&b, 0)
	if b = slow.Move(&fast, b, 0); slow.Free(&b, 0) != 2 || slow.Wait(&b, 0, 2) != time.Second {
		t.Errorf("%d free, then after %v", slow.Free(&b, 0), slow.Wait(&b, 0, 2))
	}
}

func TestFarAhead(t *testing.T) {
	r, b := gcra.New(1, 24*time.Hour, 1), gcra.Full()
	r.Take(&b, 0)
	if w := r.Wait(&b, 0, 1<<40); w < 90*365*24*time.Hour {
		t.Errorf("got %v", w)
	}
	if got := r.Fill(); got != 24*time.Hour || r.Burst() != 1 {
		t.Errorf("filled after %v", got)
	}
	if got := gcra.New(3, time.Second, 1); got.Fill() != 333_333_334 {
		t.Errorf("filled after %d ns", got.Fill())
	}
}
