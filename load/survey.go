package load

import (
	"math"
	"sync"
)

// The norms are what is usual in a fleet.
type norms struct {
	typical float64 // the median of what its endpoints take to answer
	noise   float64 // the variance of single answers around the mean of their endpoint
	spread  float64 // the variance of the means, without what is noise
	swing   float64 // the standard deviation of single answers of a typical endpoint
	real    bool    // somebody has answered
}

// unlike is the spread when nothing shows that endpoints are alike.
const unlike = 1e18

// A survey looks at all endpoints of a fleet now and then, and tells them what is usual. So the cost of one depends on all without a
// word that all calls write to.
type survey struct {
	// mu guards the rest. It is locked before that of an endpoint, never after.
	mu      sync.Mutex
	norms   norms
	members []*expected
	began   int64
	joined  bool
	credit  float64 // trials that may be given
	pass    pass
}

// A pass is a survey on its way: it asks all endpoints, and then tells all, in steps.
type pass struct {
	at      int  // the first member of the next step
	telling bool // what asking has shown
	tally   tally
	starts  int
	trying  bool      // somebody is to be tried already
	next    *expected // who is to be tried now: of those due the one that was passed over the longest,
	longest int64     // and for how long it was
}

// stride is how many endpoints one call looks at, which takes it some microseconds.
const stride = 256

// A tally is what a survey counts.
type tally struct {
	n, sum, squares float64 // of the means
	scatter         float64 // of the samples, in all,
	relative        float64 // and as a part of their mean, squared
	freedom         float64
	uncertainty     float64
	medians         medians
}

func (s *survey) join(e *expected, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.joined {
		s.joined, s.began = true, now
	}
	e.learn(s.norms)
	if s.norms.real {
		e.slow.begin(now)
		e.note()
	}
	s.enter(e)
}

// rejoin is join for one that has left.
func (s *survey) rejoin(e *expected, left, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has(e) {
		return
	}
	e.resume(s.norms, left, now)
	s.enter(e)
}

// enter makes e a member. mu is held.
func (s *survey) enter(e *expected) {
	e.place = int32(len(s.members))
	s.members = append(s.members, e)
}

// has reports whether e is a member. mu is held.
func (s *survey) has(e *expected) bool {
	return int(e.place) < len(s.members) && s.members[e.place] == e
}

func (s *survey) leave(e *expected) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.has(e) {
		return // it has left already
	}
	if s.pass.next == e {
		s.pass.next = nil
	}
	last := len(s.members) - 1
	s.members[e.place] = s.members[last]
	s.members[e.place].place = e.place
	s.members[last] = nil
	s.members = s.members[:last]
}

// pause is how long the survey may be out of date: a sixty-fourth of the decay, less in a young fleet, and never so short that
// looking at the endpoints takes a hundredth of the time, which in large fleets the pauses between steps see to.
func (s *survey) pause(now int64, d decay) int64 {
	age := float64(now-s.began) / 16
	return int64(max(min(age, 1/float64(64*d)), 2*float64(min(len(s.members), stride))))
}

// look makes a step of the survey, all of it in a fleet that is no larger, and returns when to look again. It lets one endpoint be tried that
// could not show otherwise that it is well.
func (s *survey) look(now int64, d decay) (again int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pass.telling {
		if !s.ask(now, d) {
			return now + stride
		}
		if s.conclude(); len(s.members) > stride {
			return now + stride
		}
	}
	if !s.tell() {
		return now + stride
	}
	return now + s.pause(now, d)
}

// step returns the members of the next step, and whether it is the last. Who joins or leaves meanwhile may be left out, or counted twice.
func (s *survey) step() (some []*expected, last bool) {
	n := len(s.members)
	some = s.members[min(s.pass.at, n):min(s.pass.at+stride, n)]
	s.pass.at += stride
	return some, s.pass.at >= n
}

// ask makes a step of asking, and reports whether it was the last.
func (s *survey) ask(now int64, d decay) (last bool) {
	some, last := s.step()
	p := &s.pass
	for _, e := range some {
		r := e.report(&p.tally, now, d)
		p.starts += r.starts
		p.trying = p.trying || r.trying
		if r.due && r.idle > p.longest {
			p.next, p.longest = e, r.idle
		}
	}
	return last
}

// conclude finds out what is usual, and whether the endpoint that is due may be tried.
func (s *survey) conclude() {
	p := &s.pass
	if p.tally.n > 0 {
		s.norms = p.tally.norms()
	}
	s.credit = min(s.credit+float64(p.starts)*trialShare, mostCredit)
	next := p.next
	if p.trying || next == nil || s.credit < 1 {
		next = nil
	} else {
		s.credit--
	}
	s.pass = pass{telling: true, next: next}
}

// tell makes a step of telling, and reports whether it was the last.
func (s *survey) tell() (last bool) {
	some, last := s.step()
	for _, e := range some {
		e.inform(s.norms, e == s.pass.next)
	}
	if last {
		s.pass = pass{}
	}
	return last
}

// A report is what an endpoint says in a survey besides its numbers.
type report struct {
	starts int   // since the one before
	idle   int64 // since its latest start
	due    bool  // a trial would be good
	trying bool  // it is to have one already
}

func (t *tally) add(e *estimate) {
	t.n++
	t.sum += e.mean
	t.squares += sq(e.mean)
	t.scatter += e.scatter
	t.relative += e.scatter / (sq(e.mean) + 1)
	t.freedom += e.freedom()
	t.uncertainty += e.uncertainty()
	t.medians.add(e.mean)
}

// norms returns what is usual. What remains of the variance of the means, when that which noise explains is taken off, is between the
// endpoints.
func (t *tally) norms() norms {
	n := norms{typical: t.medians.median(), real: true, spread: unlike}
	freedom := max(t.freedom, 1e-3)
	n.noise = t.scatter / freedom
	n.swing = math.Sqrt(t.relative/freedom) * n.typical
	if t.n >= 2 {
		variance := (t.squares - t.sum*t.sum/t.n) / (t.n - 1)
		n.spread = max(variance-n.noise*t.uncertainty/t.n, 0)
	}
	return n
}
