// Package gcra is the arithmetic of a rate limit: the generic cell rate algorithm (ITU-T I.371), which is a bucket of
// tokens kept as one moment, that at which the bucket is full. All is a function of the time, which is a duration
// since any fixed moment, and exact: times are whole nanoseconds and a fraction whose denominator is the number of tokens in a
// period, so that three tokens a second are three, and nothing drifts.
//
// In any span of time d, no more tokens are taken than the burst and those that d brings, rounded down.
package gcra

import (
	"math"
	"math/bits"
	"time"
)

// A Rate is so many tokens in a period, in a bucket that holds burst of them.
type Rate struct {
	tokens, per, burst uint64
	token              moment // how long one token takes to come
	slack              moment // how long all but one of a full bucket take
}

// A moment is ns + part/tokens nanoseconds, and so is a length of time. 0 <= part < tokens.
type moment struct{ ns, part int64 }

// New returns a Rate. All three are above 0; what a full bucket takes to come must be below [math.MaxInt64] / 4 ns.
func New(tokens int, per time.Duration, burst int) Rate {
	r := Rate{tokens: uint64(tokens), per: uint64(per), burst: uint64(burst)}
	r.token, r.slack = r.times(1), r.times(r.burst-1)
	return r
}

// times returns how long n tokens take to come, at most a hundred years.
func (r *Rate) times(n uint64) moment {
	const most = math.MaxInt64 / 3
	hi, lo := bits.Mul64(n, r.per)
	if hi >= r.tokens {
		return moment{ns: most}
	}
	ns, part := bits.Div64(hi, lo, r.tokens)
	if ns >= most {
		return moment{ns: most}
	}
	return moment{int64(ns), int64(part)}
}

// Burst returns how many tokens a full bucket holds.
func (r *Rate) Burst() int { return int(r.burst) }

// Fill returns how long an empty bucket takes to fill, rounded up.
func (r *Rate) Fill() time.Duration { return r.times(r.burst).up() }

func (m moment) up() time.Duration {
	if m.part > 0 {
		return time.Duration(m.ns + 1)
	}
	return time.Duration(m.ns)
}

func (r *Rate) add(a, b moment) moment {
	sum := moment{a.ns + b.ns, a.part + b.part}
	if sum.part >= int64(r.tokens) {
		sum.ns, sum.part = sum.ns+1, sum.part-int64(r.tokens)
	}
	return sum
}

func (r *Rate) sub(a, b moment) moment {
	diff := moment{a.ns - b.ns, a.part - b.part}
	if diff.part < 0 {
		diff.ns, diff.part = diff.ns-1, diff.part+int64(r.tokens)
	}
	return diff
}

// A Bucket is what is left of a Rate. Make one with [Full].
type Bucket struct {
	full   moment // when it is, or was last
	period uint64
}

// Full returns a bucket that is full at any time.
func Full() Bucket { return Bucket{full: moment{ns: math.MinInt64}} }

// IsFull reports whether all tokens are there.
func (b *Bucket) IsFull(now time.Duration) bool {
	return b.full.ns < int64(now) || b.full.ns == int64(now) && b.full.part == 0
}

// FullAt returns the moment from which on the bucket is full, rounded up, if nobody takes anything.
func (b *Bucket) FullAt() time.Duration { return b.full.up() }

// Period is a number that changes with each token that is taken from a full bucket.
func (b *Bucket) Period() uint64 { return b.period }

// Take takes a token, if there is one.
func (r *Rate) Take(b *Bucket, now time.Duration) bool {
	fresh := b.IsFull(now)
	full := b.full
	if fresh {
		full = moment{ns: int64(now)}
	}
	if r.sub(full, r.slack).up() > now {
		return false
	}
	if fresh {
		b.period++
	}
	b.full = r.add(full, r.token)
	return true
}

// Refund gives a token back that was taken in the period. If the bucket has been full since, time has replaced
// the token, and there is nothing to give back.
func (r *Rate) Refund(b *Bucket, now time.Duration, period uint64) bool {
	if b.period != period || b.IsFull(now) {
		return false
	}
	b.full = r.sub(b.full, r.token)
	return true
}

// Wait returns how long it takes until there is a token beyond those for ahead others; 0 if it is there.
func (r *Rate) Wait(b *Bucket, now time.Duration, ahead int) time.Duration {
	full := b.full
	if b.IsFull(now) {
		full = moment{ns: int64(now)}
	}
	due := r.sub(full, r.slack)
	left := r.add(moment{due.ns - int64(now), due.part}, r.times(uint64(ahead)))
	return max(0, left.up())
}

// Free returns how many tokens there are.
func (r *Rate) Free(b *Bucket, now time.Duration) int {
	return int(r.burst - min(r.burst, r.owed(b, now)))
}

// owed returns how many tokens are missing, those that are on their way included.
func (r *Rate) owed(b *Bucket, now time.Duration) uint64 {
	if b.IsFull(now) {
		return 0
	}
	hi, lo := bits.Mul64(uint64(b.full.ns-int64(now)), r.tokens)
	lo, carry := bits.Add64(lo, uint64(b.full.part), 0)
	n, rest := bits.Div64(hi+carry, lo, r.per)
	if rest > 0 {
		n++
	}
	return n
}

// Move returns b, of rate old, as a bucket of r in which as many tokens are missing, at most all.
func (r *Rate) Move(old *Rate, b Bucket, now time.Duration) Bucket {
	missing := min(old.owed(&b, now), r.burst)
	if missing > 0 {
		b.full = r.add(moment{ns: int64(now)}, r.times(missing))
	}
	return b
}
