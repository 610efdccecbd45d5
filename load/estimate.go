package load

import "math"

// An estimate is how long an endpoint takes to answer, from samples that weigh less with time.
type estimate struct {
	norms norms // of its fleet

	weight, squares float64 // of the samples: the sum of their weights, and of their squares
	mean, scatter   float64 // of the samples; scatter is the weighted sum of their squared distances from it
	at              int64   // the latest of them,
	off             float64 // and how far it was from what was expected
	shift           shift
	apart           float64 // how far the mean is from what is typical, as far as it is to be believed
}

const (
	// correlated is how many samples in a row tell as much as one that has nothing to do with the others: requests that wait in
	// the same queue wait alike.
	correlated = 3
	// follows is how much of what the latest answer was off is expected of the next.
	follows = 0.1
)

// known reports whether there are samples.
func (e *estimate) known() bool { return e.weight > 0 }

// freedom is how many samples there are beyond the one that the mean takes.
func (e *estimate) freedom() float64 { return max(e.weight-e.squares/e.weight, 0) }

// uncertainty is the variance of the mean of the samples, as a part of that of a single sample.
func (e *estimate) uncertainty() float64 { return correlated * e.squares / (e.weight * e.weight) }

// add adds a sample.
func (e *estimate) add(now int64, took float64, d decay) {
	if e.known() {
		e.off = took - e.base(now, d)
		if e.shifted(took) {
			e.restart(now)
			return
		}
	}
	fade := d.fade(e.at, now)
	e.squares = e.squares*fade*fade + 1
	e.weight = e.weight*fade + 1
	distance := took - e.mean
	e.mean += distance / e.weight
	e.scatter = e.scatter*fade + distance*(took-e.mean)
	e.at = max(e.at, now)
	e.weigh()
}

// weigh finds out how far the mean is to be believed. It has to be called when the samples or the norms have changed.
func (e *estimate) weigh() {
	e.apart = 0
	if e.known() {
		spread := e.norms.spread * e.weight * e.weight
		believed := spread / (spread + e.norms.noise*correlated*e.squares + 1e-9)
		e.apart = believed * (e.mean - e.norms.typical)
	}
}

// shifted reports whether a sample, after those before it, shows that the endpoint has become slower.
func (e *estimate) shifted(took float64) bool {
	if took <= e.mean && e.shift.score == 0 {
		return false // whatever the deviation
	}
	return e.shift.add((took-e.mean)/e.deviation(), took)
}

// deviation is the standard deviation of a sample: of those here, and of one that deviates like others in the fleet and by a
// fifth. A twentieth of the mean is never worth a notice.
func (e *estimate) deviation() float64 {
	prior := e.norms.noise + sq(e.mean/5)
	return math.Sqrt((e.scatter+prior)/(e.freedom()+1)+sq(e.mean/20)) + 1
}

// restart leaves of the samples those of the shift.
func (e *estimate) restart(now int64) {
	n := e.shift.n
	variance := e.norms.noise
	if e.freedom() >= 1 {
		variance = e.scatter / e.freedom()
	}
	e.mean, e.weight, e.squares = e.shift.sum/n, n, n
	e.scatter = variance * (n - 1)
	e.at, e.off, e.shift = max(e.at, now), 0, shift{}
	e.weigh()
}

// forget leaves nothing of the samples.
func (e *estimate) forget() { *e = estimate{norms: e.norms, at: e.at} }

// level is how long the next answer is expected to take.
func (e *estimate) level(now int64, d decay) float64 {
	level := e.base(now, d)
	if e.off != 0 {
		x := float64(max(now-e.at, 0)) / max(e.norms.typical, 1)
		level += follows * e.off / (1 + x*(1+x/2)) // like e^-x, without its cost
	}
	return max(level, minCost)
}

// base is level without what the latest answer was off.
func (e *estimate) base(now int64, d decay) float64 {
	return e.norms.typical + e.apart*d.fade(e.at, now)
}

// A shift is the samples in a row that took longer than they should, for Page's cumulative sum test (Continuous Inspection Schemes,
// Biometrika 1954).
type shift struct {
	score  float64
	n, sum float64
}

const (
	tolerated = 1  // deviations of a sample that are no sign of a shift
	mostScore = 12 // of one sample, so that it alone shows none
	shifted   = 20 // the score from which on there is one
)

// add adds a sample that is z deviations from the mean, and reports whether there has been a shift.
func (s *shift) add(z, took float64) bool {
	s.score += min(z-tolerated, mostScore)
	if s.score <= 0 {
		*s = shift{}
		return false
	}
	s.n++
	s.sum += took
	return s.score > shifted
}

func sq(x float64) float64 { return x * x }
