package histogram

import "time"

// A Window tells what a [Histogram] was given lately from all that it was given. Whoever records does not pay for it: each Tick copies
// the counts, 26 KB, and what lies between two copies is what was recorded between them.
//
// The zero Window is not ready: use [NewWindow]. Its methods must not be called concurrently with each other.
type Window struct {
	of    *Histogram
	marks []mark // a ring; the latest is at
	at    int
	diff  mark
}

// A mark is what had been recorded at a tick.
type mark [buckets]uint64

// NewWindow returns a Window over the last so many ticks of h. What h was given before does not count.
func NewWindow(h *Histogram, ticks int) *Window {
	w := &Window{of: h, marks: make([]mark, ticks+1)}
	w.marks[0].read(h)
	for i := range w.marks {
		w.marks[i] = w.marks[0]
	}
	return w
}

// Tick ends an interval and begins the next.
func (w *Window) Tick() {
	w.at = (w.at + 1) % len(w.marks)
	w.marks[w.at].read(w.of)
}

// Quantiles returns how many durations were recorded in the last so many ticks, at most as many as the Window has, and into what
// their quantiles: see [Histogram.Quantile]. If there are none, into is left alone.
func (w *Window) Quantiles(ticks int, qs []float64, into []time.Duration) uint64 {
	ticks = min(max(ticks, 0), len(w.marks)-1)
	from := &w.marks[(w.at-ticks+len(w.marks))%len(w.marks)]
	var total uint64
	for i, n := range &w.marks[w.at] {
		w.diff[i] = n - from[i]
		total += w.diff[i]
	}
	if total == 0 {
		return 0
	}
	for i, q := range qs {
		into[i] = w.diff.quantile(rank(q, total))
	}
	return total
}

func (m *mark) read(h *Histogram) {
	for i := range m {
		m[i] = h.counts[i].Load()
	}
}

// quantile returns the middle of the bucket that has the given rank.
func (m *mark) quantile(rank uint64) time.Duration {
	var seen uint64
	for i, n := range m {
		if seen += n; seen >= rank {
			return time.Duration(middle(i)) * time.Microsecond
		}
	}
	return Limit // not reached: rank is at most the sum
}
