package load

import "math"

// medians finds a median without keeping the numbers: it counts them in buckets, eight to each doubling from 1 µs up, and returns the mean of
// the bucket in the middle.
type medians struct {
	n    int32
	of   [buckets]int32
	sums [buckets]float64
}

// The bits of a float64 are its exponent and then its fraction: their first bits number the buckets.
const (
	buckets     = 8 * 36 // up to 19 hours
	bucketShift = 52 - 3
	bucketBase  = 1023 << 3 // the bucket of 1.0
)

func bucketOf(x float64) int {
	return min(int(math.Float64bits(max(x, 1))>>bucketShift)-bucketBase, buckets-1)
}

func (m *medians) add(x float64) {
	i := bucketOf(x)
	m.n++
	m.of[i]++
	m.sums[i] += x
}

// median returns the lower of the two in the middle, 0 if there is nothing.
func (m *medians) median() float64 {
	left := (m.n + 1) / 2
	for i, n := range m.of {
		if left -= n; n > 0 && left <= 0 {
			return m.sums[i] / float64(n)
		}
	}
	return 0
}
