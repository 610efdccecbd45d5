package outlier

import (
	"math"
	"sync/atomic"
	"time"
)

// A histogram counts durations in buckets, eight to each doubling from 1 µs up to a day. Adding is one atomic step.
type histogram [buckets]atomic.Uint32

const (
	perDoubling = 8
	buckets     = perDoubling * 37
)

// The bits of a float64 are its exponent and then its fraction: their first bits number the buckets.
const (
	bucketShift = 52 - 3
	bucketBase  = 1023 << 3 // the bucket of 1 µs
)

func (h *histogram) add(d time.Duration) {
	us := max(float64(d)/float64(time.Microsecond), 1)
	h[min(int(math.Float64bits(us)>>bucketShift)-bucketBase, buckets-1)].Add(1)
}

// take empties h, and returns the median, as exact as the buckets are wide, and of how many.
func (h *histogram) take() (median time.Duration, n uint64) {
	var counts [buckets]uint64
	for i := range h {
		if h[i].Load() == 0 {
			continue
		}
		counts[i] = uint64(h[i].Swap(0))
		n += counts[i]
	}
	below := uint64(0)
	for i, c := range counts {
		if c > 0 && below+c > (n-1)/2 {
			return between(i, (float64((n-1)/2-below)+0.5)/float64(c)), n
		}
		below += c
	}
	return 0, 0
}

// between is the duration at a part of bucket i.
func between(i int, part float64) time.Duration {
	low, high := edge(i), edge(i+1)
	return time.Duration((low + part*(high-low)) * float64(time.Microsecond))
}

func edge(i int) float64 { return math.Float64frombits(uint64(i+bucketBase) << bucketShift) }
