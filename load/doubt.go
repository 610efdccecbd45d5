package load

// A doubt is what speaks against an average that is the memory of a peak: successes since that took less than half of it. By itself the
// memory of a peak of 20 times the usual fades in 30 s, however many they are. When there are 20 of them, and none that took longer in
// half of the decay, the average is the longest of them. An endpoint whose times vary that much has one that takes longer
// among 20, so it keeps its average.
type doubt struct {
	since int64 // when the average was last confirmed
	n     int
	most  float64
}

const doubts = 20

// confirm ends the doubt.
func (d *doubt) confirm(now int64) { *d = doubt{since: now} }

// add adds a success, and reports whether the average is to be what is then the longest.
func (d *doubt) add(now int64, took, decay float64) bool {
	d.n++
	d.most = max(d.most, took)
	return d.n >= doubts && float64(now-d.since) >= decay/2
}
