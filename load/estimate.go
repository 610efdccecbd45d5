package load

import "math"

// An outlook is how long the next answer of an endpoint is expected to take.
type outlook struct {
	typical float64 // of the fleet
	apart   float64 // how far the mean of the samples is from what is typical, as far as it is to be believed
	at      int64   // the latest sample,
	off     float64 // and how far it was from what was expected
}

// An estimate is how long an endpoint takes to answer, from samples that weigh less with time. Its [outlook] is told what they say.
type estimate struct {
	shift         shift
	noise, spread float64 // of the norms of its fleet

	mean, scatter   float64 // of the samples; scatter is the weighted sum of their squared distances from it
	weight, squares float64 // the sum of their weights, and of their squares
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
func (e *estimate) add(o *outlook, now int64, took float64, d decay) {
	fade := d.fade(o.at, now)
	if e.known() {
		o.off = took - o.base(fade)
		if e.shifted(took) {
			e.restart(o, now)
			return
		}
	}
	e.squares = e.squares*fade*fade + 1
	e.weight = e.weight*fade + 1
	distance := took - e.mean
	e.mean += distance / e.weight
	e.scatter = e.scatter*fade + distance*(took-e.mean)
	o.at = max(o.at, now)
	e.weigh(o)
}

// weigh finds out how far the mean is to be believed. It has to be called when the samples or the norms have changed.
func (e *estimate) weigh(o *outlook) {
	o.apart = 0
	if e.spread > 0 && e.known() {
		spread := e.spread * e.weight * e.weight
		believed := spread / (spread + e.noise*correlated*e.squares + 1e-9)
		o.apart = believed * (e.mean - o.typical)
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
	prior := e.noise + sq(e.mean/5)
	return math.Sqrt((e.scatter+prior)/(e.freedom()+1)+sq(e.mean/20)) + 1
}

// restart leaves of the samples those of the shift.
func (e *estimate) restart(o *outlook, now int64) {
	n := e.shift.n
	variance := e.noise
	if e.freedom() >= 1 {
		variance = e.scatter / e.freedom()
	}
	e.mean, e.weight, e.squares = e.shift.sum/n, n, n
	e.scatter = variance * (n - 1)
	o.at, o.off, e.shift = max(o.at, now), 0, shift{}
	e.weigh(o)
}

// forget leaves nothing of the samples.
func (e *estimate) forget(o *outlook) {
	*e = estimate{noise: e.noise, spread: e.spread}
	o.off, o.apart = 0, 0
}

// level is how long the next answer is expected to take.
func (o *outlook) level(now int64, d decay) float64 {
	level := o.baseAt(now, d)
	if o.off != 0 {
		x := float64(max(now-o.at, 0)) / max(o.typical, 1)
		level += follows * o.off / (1 + x*(1+x/2)) // like e^-x, without its cost
	}
	return max(level, minCost)
}

// baseAt is level without what the latest answer was off.
func (o *outlook) baseAt(now int64, d decay) float64 {
	if o.apart == 0 {
		return o.typical
	}
	return o.base(d.fade(o.at, now))
}

// base is that when the weight of the latest sample is fade.
func (o *outlook) base(fade float64) float64 { return o.typical + o.apart*fade }

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
	score := s.score + min(z-tolerated, mostScore)
	if score <= 0 {
		if s.score != 0 { // what is nothing already need not be written
			*s = shift{}
		}
		return false
	}
	s.score = score
	s.n++
	s.sum += took
	return s.score > shifted
}

func sq(x float64) float64 { return x * x }
