package backoff_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/backoff"
)

func TestValidate(t *testing.T) {
	good := backoff.Exponential{Min: time.Millisecond, Max: time.Second, Jitter: 0.5}
	if err := good.Validate(); err != nil {
		t.Fatalf("%+v is refused: %v", good, err)
	}
	refused := func(name string, change func(*backoff.Exponential)) {
		t.Run(name, func(t *testing.T) {
			e := good
			change(&e)
			if err := e.Validate(); err == nil {
				t.Errorf("%+v is accepted", e)
			}
		})
	}
	for _, jitter := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), -0.01, 1.01} {
		refused(fmt.Sprint("RT10 jitter must be finite and within 0 and 1: ", jitter), func(e *backoff.Exponential) { e.Jitter = jitter })
	}
	refused("RT10 D42 a min that does not back off", func(e *backoff.Exponential) { e.Min = 0 })
	refused("a min below a millisecond", func(e *backoff.Exponential) { e.Min = time.Millisecond - 1 })
	refused("a max below min", func(e *backoff.Exponential) { e.Max = time.Millisecond - 1 })
}

// random returns valid bounds, long ones as often as short ones.
func random(r *rand.Rand) backoff.Exponential {
	width := func() time.Duration { return time.Duration(r.Int64() >> r.IntN(44)) }
	lo := max(time.Millisecond, width())
	return backoff.Exponential{Min: lo, Max: max(lo, width()), Jitter: r.Float64()}
}

func TestBase(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	t.Run("RT7 the first base is min", func(t *testing.T) {
		for range 2000 {
			if e := random(r); e.Base(0) != e.Min {
				t.Fatalf("%+v: first base is %v", e, e.Base(0))
			}
		}
	})
	t.Run("RT8 a base is within min and max, and twice the one before until max", func(t *testing.T) {
		for range 2000 {
			e := random(r)
			for i := range 70 {
				want := e.Max
				if before := e.Base(i); before <= e.Max/2 {
					want = 2 * before
				}
				if got := e.Base(i + 1); got != want {
					t.Fatalf("%+v: base %d is %v, want %v", e, i+1, got, want)
				}
			}
			if i := r.Int(); e.Base(i) < e.Min || e.Base(i) > e.Max {
				t.Fatalf("%+v: base %d is %v", e, i, e.Base(i))
			}
		}
	})
	t.Run("a negative count is the first", func(t *testing.T) {
		e := backoff.Exponential{Min: time.Second, Max: time.Minute}
		if got := e.Base(-1); got != time.Second {
			t.Errorf("base -1 is %v", got)
		}
	})
}

func TestDelay(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	t.Run("RT9 a delay is above 0 and at most base", func(t *testing.T) {
		below1 := math.Nextafter(1, 0)
		for range 2000 {
			e, i := random(r), r.IntN(70)
			if r.IntN(10) == 0 {
				e.Max = math.MaxInt64
			}
			for _, u := range []float64{0, r.Float64(), below1} {
				if d := e.Delay(i, u); d <= 0 || d > e.Base(i) {
					t.Fatalf("%+v: delay %d with u = %v is %v, base %v", e, i, u, d, e.Base(i))
				}
			}
		}
	})
	t.Run("D40 jitter covers whole seconds", func(t *testing.T) {
		e := backoff.Exponential{Min: time.Second, Max: time.Second, Jitter: 0.99}
		if got := e.Delay(0, 0.5); got != 505*time.Millisecond {
			t.Errorf("half of a 99%% jitter on 1s leaves %v, want 505ms", got)
		}
	})
	t.Run("a jitter of 0 means 1", func(t *testing.T) {
		e := backoff.Exponential{Min: time.Second, Max: time.Second}
		if got := e.Delay(0, 0.75); got != 250*time.Millisecond {
			t.Errorf("got %v, want 250ms", got)
		}
	})
	t.Run("X12 the mean is base times 1 - jitter/2", func(t *testing.T) {
		for _, jitter := range []float64{0.2, 0.5, 1} {
			e := backoff.Exponential{Min: 1500 * time.Millisecond, Max: time.Hour, Jitter: jitter}
			var sum time.Duration
			const n = 20_000
			for range n {
				sum += e.Delay(1, r.Float64())
			}
			mean, want := (sum / n).Seconds(), 3*(1-jitter/2)
			// Six standard errors of a mean of n uniform draws.
			if bound := 6 * 3 * jitter / math.Sqrt(12*n); math.Abs(mean-want) > bound {
				t.Errorf("jitter %v: mean %.4fs, want %.4fs within %.4fs", jitter, mean, want, bound)
			}
		}
	})
}

func BenchmarkDelay(b *testing.B) {
	e := backoff.Exponential{Min: 50 * time.Millisecond, Max: 10 * time.Second}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		e.Delay(i&7, 0.5)
	}
}

func ExampleExponential() {
	e := backoff.Exponential{Min: 50 * time.Millisecond, Max: 300 * time.Millisecond, Jitter: 0.5}
	for i := range 4 {
		fmt.Println(e.Base(i), e.Delay(i, 0.8))
	}
	// Output:
	// 50ms 30ms
	// 100ms 60ms
	// 200ms 120ms
	// 300ms 180ms
}
