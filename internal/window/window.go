// Package window tells a quantile of durations by the last full period of time. It knows no clock: callers bring the time.
//
// A duration may be censored: whoever measured it only knows that it would have been longer, because the call was
// cancelled, or failed. Left out, the slow ones would be missing, and the quantile would be too low; so it is that of
// the estimator of Kaplan and Meier ("Nonparametric Estimation from Incomplete Observations", JASA 53, 1958). Without
// censored durations that is the plain quantile.
//
// Durations are counted in buckets of at most 1/32 of their values, which answer with their middle. So a quantile is off by
// less than 1.6 %, and the memory, about 15 KB, does not grow with what is recorded.
package window

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// half is the number of buckets for each doubling; the first 2×half values have a bucket each.
	halfBits = 5
	half     = 1 << halfBits
	buckets  = (63 - halfBits + 1) * half
)

// unknown is the answer while there is none.
const unknown = -1

// A Window counts the durations of the current period, and answers by those of the one before. Make one with [New]. Its
// methods may be called concurrently; it must not be copied.
type Window struct {
	quantile float64
	minimum  uint64
	period   time.Duration

	// answer is written before until, so whoever sees a period sees the answer that belongs to it, or a later one.
	answer atomic.Int64
	until  atomic.Int64 // when the period ends

	mu       sync.Mutex // held while one period turns into the next
	began    bool
	complete [buckets]atomic.Uint32
	censored [buckets]atomic.Uint32
}

// New returns a Window for the quantile q, within 0 and 1, of at least minimum durations in a period.
func New(q float64, minimum int, period time.Duration) *Window {
	w := &Window{quantile: q, minimum: uint64(minimum), period: period}
	w.answer.Store(unknown)
	w.until.Store(math.MinInt64)
	return w
}

// Record counts d, known at the time now, since any fixed moment. The first period begins with the first use.
func (w *Window) Record(now, d time.Duration) {
	w.turn(now)
	w.complete[index(d)].Add(1)
}

// Censor counts a duration that would have been longer than d.
func (w *Window) Censor(now, d time.Duration) {
	w.turn(now)
	w.censored[index(d)].Add(1)
}

// Quantile returns the quantile of the last full period at the time now, and false if that had too few durations.
func (w *Window) Quantile(now time.Duration) (time.Duration, bool) {
	w.turn(now)
	d := w.answer.Load()
	return time.Duration(d), d != unknown
}

// turn begins another period if it is time. Time that runs backwards stands still.
func (w *Window) turn(now time.Duration) {
	if int64(now) >= w.until.Load() {
		w.turnOver(now)
	}
}

func (w *Window) turnOver(now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.began {
		w.began = true
		w.until.Store(int64(now + w.period))
		return
	}
	late := now - time.Duration(w.until.Load())
	if late < 0 { // another caller was faster
		return
	}
	answer := w.empty()
	if late >= w.period { // what was counted is older than the last full period, in which there was nothing
		answer = unknown
	}
	w.answer.Store(answer)
	w.until.Store(int64(now - late%w.period + w.period))
}

// A count is how many durations are in a bucket.
type count struct{ bucket, complete, censored int }

// empty takes all durations out, each once, also while others are recorded, and returns their quantile.
func (w *Window) empty() int64 {
	var counts []count
	var total uint64
	for i := range buckets {
		c := count{i, take(&w.complete[i]), take(&w.censored[i])}
		if n := c.complete + c.censored; n > 0 {
			counts = append(counts, c)
			total += uint64(n)
		}
	}
	if total == 0 || total < w.minimum {
		return unknown
	}
	return quantile(counts, float64(total), w.quantile)
}

func take(n *atomic.Uint32) int {
	if n.Load() == 0 {
		return 0
	}
	return int(n.Swap(0))
}

// rounding is what a product of shares may lack.
const rounding = 1e-9

// quantile is the least duration that a share q does not exceed. If it lies beyond all that is known, that is
// the longest there is; if nothing is complete, nothing is known.
func quantile(counts []count, atRisk, q float64) int64 {
	left, known := 1.0, false // the share that is longer
	for _, c := range counts {
		known = known || c.complete > 0
		left *= 1 - float64(c.complete)/atRisk
		if left <= 1-q+rounding {
			return middle(c.bucket)
		}
		atRisk -= float64(c.complete + c.censored)
	}
	if !known {
		return unknown
	}
	return middle(counts[len(counts)-1].bucket)
}

// index returns the bucket of d: its top six bits, and how far they were shifted.
func index(d time.Duration) int {
	ns := uint64(max(d, 0))
	shift := max(bits.Len64(ns)-halfBits-1, 0)
	return shift*half + int(ns>>shift)
}

// middle returns the nanoseconds in the middle of bucket i.
func middle(i int) int64 {
	if i < 2*half {
		return int64(i)
	}
	shift := i/half - 1
	low := int64(i-shift*half) << shift
	return low + (int64(1)<<shift)/2
}
