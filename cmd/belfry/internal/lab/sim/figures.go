package sim

import (
	"math"
	"slices"
)

// Latencies are those of answered requests, in rising order.
type Latencies []int64

// LatenciesOf returns the latencies of those requests that keep says, all if it is nil. Those without an answer count as
// the longest of all.
func LatenciesOf(all []Request, keep func(Request) bool) Latencies {
	l := make(Latencies, 0, len(all))
	for _, r := range all {
		if keep == nil || keep(r) {
			l = append(l, min(r.Latency, Never))
		}
	}
	slices.Sort(l)
	return l
}

// At returns the latency that a share p of the requests does not exceed, in µs; NaN if there are none.
func (l Latencies) At(p float64) float64 {
	if len(l) == 0 {
		return math.NaN()
	}
	return float64(l[min(max(int(math.Ceil(p*float64(len(l))))-1, 0), len(l)-1)])
}

// Mean returns the mean of those that were answered, in µs.
func (l Latencies) Mean() float64 {
	sum, n := 0.0, 0
	for _, v := range l {
		if v < Never {
			sum += float64(v)
			n++
		}
	}
	return sum / float64(n)
}

// Within returns the share of requests that took no longer than limit.
func (l Latencies) Within(limit int64) float64 {
	n, _ := slices.BinarySearch(l, limit+1)
	return float64(n) / float64(len(l))
}

// Share returns which part of the requests that among keeps is kept by keep. A nil among keeps all.
func Share(all []Request, among, keep func(Request) bool) float64 {
	n, of := 0, 0
	for _, r := range all {
		if among != nil && !among(r) {
			continue
		}
		of++
		if keep(r) {
			n++
		}
	}
	return float64(n) / float64(of)
}
