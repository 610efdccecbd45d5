package bench

import (
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/belfry-go/belfry/internal/gcra"
)

// The bucket of limit.Rate and that of x/time/rate are two ways to say the same. The other counts tokens in a float64 and is
// told the rate as one, so it may be wrong about a token that is due at that very moment: where the two disagree, a whole
// token must be that close in exact arithmetic, and from there on the two are compared anew.
func TestRateAgreesWithXTimeRate(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	decisions, rounded := 0, 0
	for range 500 {
		tokens, per, burst := 1+rng.IntN(1000), time.Duration(1+rng.Int64N(1e10)), 1+rng.IntN(50)
		ours, bucket := gcra.New(tokens, per, burst), gcra.Full()
		theirs := rate.NewLimiter(rate.Limit(float64(tokens)/per.Seconds()), burst)
		epoch := time.Unix(1_000_000_000, 0)
		now := time.Duration(0)
		for range 500 {
			now += pause(rng, &ours, &bucket, now, per/time.Duration(tokens))
			before := bucket
			got, want := ours.Take(&bucket, now), theirs.AllowN(epoch.Add(now), 1)
			if decisions++; got == want {
				continue
			}
			rounded++
			if off := margin(&ours, before, now); off > 2*time.Nanosecond {
				t.Fatalf("seed %d: %d per %v, burst %d, at %v: taken %v, x/time/rate says %v, a token is %v away from due",
					seed, tokens, per, burst, now, got, want, off)
			}
			break // their buckets differ by a token from now on
		}
	}
	t.Logf("seed %d: %d decisions, %d times x/time/rate rounded", seed, decisions, rounded)
	if rounded > decisions/100 {
		t.Errorf("seed %d: the two disagreed %d times in %d decisions", seed, rounded, decisions)
	}
}

// pause returns how long to wait until the next attempt: often until exactly when a token is due, or a little less or more.
func pause(rng *rand.Rand, r *gcra.Rate, b *gcra.Bucket, now, token time.Duration) time.Duration {
	due := r.Wait(b, now, 0)
	switch rng.IntN(4) {
	case 0:
		return due
	case 1:
		return max(0, due+time.Duration(rng.Int64N(2001)-1000))
	case 2:
		return 0
	}
	return time.Duration(rng.Int64N(int64(2*token) + 1))
}

// margin returns how far from now the moment is at which the decision would be another one.
func margin(r *gcra.Rate, b gcra.Bucket, now time.Duration) time.Duration {
	if wait := r.Wait(&b, now, 0); wait > 0 {
		return wait
	}
	for off := time.Duration(1); off < time.Microsecond; off *= 2 {
		if r.Wait(&b, now-off, 0) > 0 {
			return off
		}
	}
	return time.Microsecond
}
