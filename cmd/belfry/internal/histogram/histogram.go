// Package histogram counts durations so that their quantiles can be read while others still record.
//
// Buckets are as wide as the numbers in them are large: up to 256 µs each microsecond has its own, above that a
// bucket is at most 1/128 of its values wide and answers with its middle. A quantile is thus off by less than 0.4 %, and
// the memory, about 26 KB, does not grow with what is recorded.
package histogram

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Limit is the longest duration that is told from longer ones, about 71 minutes.
const Limit = time.Duration(math.MaxUint32) * time.Microsecond

const (
	// half is the number of buckets for each doubling; the first 2×half values have a bucket each.
	halfBits = 7
	half     = 1 << halfBits
	buckets  = (32 - halfBits + 1) * half
)

// A Histogram counts durations. The zero Histogram is empty and ready. Its methods may be called concurrently; it
// must not be copied.
type Histogram struct {
	counts  [buckets]atomic.Uint64
	longest atomic.Uint64
}

// Record counts d. Below zero is zero, beyond [Limit] is Limit.
func (h *Histogram) Record(d time.Duration) {
	us := uint64(min(max(d, 0), Limit) / time.Microsecond)
	for {
		seen := h.longest.Load()
		if us <= seen || h.longest.CompareAndSwap(seen, us) {
			break
		}
	}
	h.counts[index(us)].Add(1)
}

// Count returns how many durations were recorded.
func (h *Histogram) Count() uint64 {
	var n uint64
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}

// Quantile returns the smallest duration that a share q of all recorded ones does not exceed: 0.5 is the
// median. q is taken to lie in [0, 1]. An empty histogram answers false.
func (h *Histogram) Quantile(q float64) (time.Duration, bool) {
	total := h.Count()
	if total == 0 {
		return 0, false
	}
	rank := rank(q, total)
	longest := h.longest.Load()
	var seen uint64
	for i := range h.counts {
		seen += h.counts[i].Load()
		if seen >= rank {
			return time.Duration(min(middle(i), longest)) * time.Microsecond, true
		}
	}
	return time.Duration(longest) * time.Microsecond, true
}

// rank returns which of so many durations in order is the quantile q, from 1.
func rank(q float64, total uint64) uint64 {
	return max(uint64(math.Ceil(min(max(q, 0), 1)*float64(total))), 1)
}

// index returns the bucket of a number of microseconds: its top eight bits, and how far they were shifted.
func index(us uint64) int {
	shift := max(bits.Len64(us)-halfBits-1, 0)
	return shift*half + int(us>>shift)
}

// middle returns the microseconds in the middle of bucket i.
func middle(i int) uint64 {
	if i < 2*half {
		return uint64(i)
	}
	shift := i/half - 1
	low := uint64(i-shift*half) << shift
	return low + (uint64(1)<<shift)/2
}
