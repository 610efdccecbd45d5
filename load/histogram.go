package load

import (
	"math"
	"sync"
)

// A histogram counts the averages of a fleet in buckets, eight to each doubling from 1 µs up. So the median costs no scan of the
// endpoints, and is exact to an eighth; it is the lower end of its bucket, in favour of newcomers.
type histogram struct {
	// mu guards the rest, and nothing is called under it.
	mu      sync.Mutex
	buckets [buckets]int32
	total   int32
	known   float64 // the median, unless stale
	stale   bool
}

// nowhere is the place of what is not in the histogram.
const nowhere = -1

// move counts in the bucket of average what was counted in place, and returns the new place.
func (h *histogram) move(place int, average float64) int {
	to := bucketOf(average)
	if to == place {
		return place
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.take(place)
	h.buckets[to]++
	h.total++
	h.stale = true
	return to
}

// leave ends the counting of what was counted in place.
func (h *histogram) leave(place int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.take(place)
}

func (h *histogram) take(place int) {
	if place == nowhere {
		return
	}
	h.buckets[place]--
	h.total--
	h.stale = true
}

// median returns the lower of the two in the middle, and false if there is nothing.
func (h *histogram) median() (float64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.total == 0 {
		return 0, false
	}
	if h.stale {
		h.stale = false
		h.known = h.find((h.total + 1) / 2)
	}
	return h.known, true
}

// find returns the lower end of the bucket with the nth average.
func (h *histogram) find(nth int32) float64 {
	i := 0
	for nth -= h.buckets[0]; nth > 0 && i+1 < len(h.buckets); nth -= h.buckets[i] {
		i++
	}
	return math.Float64frombits(uint64(i+bucketBase) << bucketShift)
}
