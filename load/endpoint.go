package load

import (
	"math"
	"sync"
	"time"
)

// An expected is the load of one endpoint. Its fields are in an order that touches few cache lines of 64 bytes: the cost of one like any other is
// read from the first alone, and a call writes the first, the second and the fourth.
type expected struct {
	// mu guards what follows, all of which changes together, but for fleet and place. Whoever holds it does not lock the fleet's.
	mu       sync.Mutex
	fleet    *expectedFleet
	next     outlook
	present  evidence
	last     int64   // the latest start
	swing    float64 // of the norms of the fleet
	starts   int32   // since the latest survey
	started  bool
	answered bool
	real     bool // of the norms of the fleet
	trial    trial
	past     estimate
	odds     odds
	slow     slowStart
	first    int64 // the first start
	place    int32 // among the members of the fleet, and guarded by its mu
}

func (e *expected) Start(now int64) Mark {
	e.mu.Lock() // without defer here and below, which calls would show; nothing here panics
	if !e.started {
		e.started, e.first, e.last = true, now, now
	}
	e.last = max(e.last, now)
	e.starts++
	if e.present.unusual {
		e.trial.begin(now)
		e.note()
	}
	mark := e.present.start(now)
	e.mu.Unlock()
	return mark
}

func (e *expected) End(now int64, mark Mark, class Class) {
	e.mu.Lock()
	e.end(now, mark, class)
	e.note()
	e.mu.Unlock()
	if f := e.fleet; now >= f.next.Load() {
		f.look(now)
	}
}

// end is End while mu is held.
func (e *expected) end(now int64, mark Mark, class Class) {
	e.present.settle(mark, class)
	tried := e.trial.end(mark)
	if mark.Start < e.trial.proven {
		return // it was started before the endpoint was well again: old news, however it ended
	}
	took := float64(max(now-mark.Start, 0))
	if tried {
		e.judge(class, took)
	}
	switch class {
	case Success:
		e.odds.judge(mark.Start, now, e.fleet.fade(e.odds.at, now), true)
		e.past.add(&e.next, now, took, e.fleet.decay)
		e.answered = true
	case Failure:
		e.odds.judge(mark.Start, now, e.fleet.fade(e.odds.at, now), false)
		e.atLeast(now, max(took, e.next.typical))
		e.answered = true
	case Cancelled:
		e.atLeast(now, took)
	case Rejected:
	}
}

// note finds out whether the cost is more than a matter of next and of what is out. It has to be called when one of those changes that it asks for.
// mu is held.
func (e *expected) note() {
	e.present.unusual = e.trial.due || e.slow.on || e.odds.bad != 0 || e.present.overtaken.n != 0
}

// atLeast adds a sample if it is no improvement.
func (e *expected) atLeast(now int64, took float64) {
	if took >= e.next.level(now, e.fleet.decay) {
		e.past.add(&e.next, now, took, e.fleet.decay)
	}
}

// judge ends a trial. If it succeeded, what was known before it is forgotten.
func (e *expected) judge(class Class, took float64) {
	if class == Success {
		e.past.forget(&e.next)
		e.odds = odds{}
	}
	switch {
	case class == Failure:
		e.trial.ill(failedTrial)
	case class == Success && took <= ill*e.next.typical:
		e.trial.well()
	default:
		e.trial.ill(slowTrial)
	}
}

func (e *expected) Cost(now int64, held int) float64 {
	e.mu.Lock()
	cost := e.cost(now, held, 0, e.next.level(now, e.fleet.decay))
	e.mu.Unlock()
	return cost
}

// cost is Cost when an answer takes level, and others have so many requests at the endpoint. mu is held.
func (e *expected) cost(now int64, held int, others, level float64) float64 {
	if !e.present.unusual {
		return e.believe(now, level) * (float64(max(held, 0)+1) + others)
	}
	return e.wholeCost(now, held, others, level)
}

// wholeCost is cost of any endpoint, whether it is like any other or not.
func (e *expected) wholeCost(now int64, held int, others, level float64) float64 {
	line := float64(max(held-e.lost(now, level), 0)+1) + others
	if e.trial.due {
		return trialCost * min(level, e.next.typical) * line
	}
	return e.believe(now, level) * e.attempts(now) * line * e.handicap(now, held)
}

// believe is level, or what is in flight says of it, beyond what scatter explains, if that is more. It says nothing when it is time to try the
// endpoint whatever is still out; starting a call there ends that.
func (e *expected) believe(now int64, level float64) float64 {
	if e.present.n == 0 {
		return level
	}
	twice := e.present.twiceAge(now)
	if twice <= level {
		return level
	}
	usual := min(e.past.mean, farOut*e.next.typical)
	if float64(now-e.last) >= max(retryAfter, retryAfterPeaks*usual) {
		return level
	}
	return max(level, twice-explained*e.swing)
}

const (
	dear      = 1.25 // times what is typical, and an endpoint is worth a trial
	ill       = 2    // times the typical latency, and a trial has shown nothing new
	farOut    = 30   // times the typical latency, and its mean may be an accident
	explained = 4    // deviations by which the ages of calls in flight vary without a reason
	lostAfter = 20   // usual answers, and an overtaken call is lost
)

// lost is how many calls were overtaken so long ago that they are no load.
func (e *expected) lost(now int64, level float64) int {
	o := e.present.overtaken
	if o.n == 0 || o.age(now) <= lostAfter*max(level, e.next.typical) {
		return 0
	}
	return int(o.n)
}

func (e *expected) attempts(now int64) float64 {
	if e.odds.bad == 0 {
		return 1
	}
	return e.odds.attempts(e.fleet.fade(e.odds.at, now))
}

// handicap is what a newcomer costs more, once it has been given its first request.
func (e *expected) handicap(now int64, held int) float64 {
	if !e.slow.on || !e.started {
		return 1
	}
	factor := e.slow.factor(now, e.fleet.slowStart)
	if !e.answered && held > 0 && float64(now-e.first) < max(newcomerFor, newcomerForPeaks*e.next.typical) {
		factor *= newcomerFactor
	}
	return factor
}

// report adds what is known of e to a survey.
func (e *expected) report(t *tally, now int64, d decay) report {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.past.known() {
		t.add(&e.past)
	}
	r := report{starts: int(e.starts), idle: now - e.last, trying: e.trial.due}
	e.starts = 0
	if e.answered && e.slow.over(now, e.fleet.slowStart) {
		e.slow.on = false
		e.note()
	}
	typical := e.next.typical
	r.due = e.answered && e.present.n == 0 && float64(r.idle) > e.trial.after(typical) &&
		e.next.level(now, d)*e.attempts(now) > dear*typical
	return r
}

// inform tells e what is usual, and whether it is to be tried.
func (e *expected) inform(n norms, try bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.learn(n)
	e.trial.due = e.trial.due || try
	e.note()
}

// learn notes what is usual. mu is held.
func (e *expected) learn(n norms) {
	e.next.typical, e.past.noise, e.past.spread, e.swing, e.real = n.typical, n.noise, n.spread, n.swing, n.real
	e.past.weigh(&e.next)
}

func (e *expected) Latency(now int64) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Duration(math.Round(e.next.level(now, e.fleet.decay) * float64(time.Microsecond)))
}

func (e *expected) Back(now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.real {
		e.slow.begin(now)
		e.note()
	}
}

// SlowStart is what it costs more for being new, or back. Before its first request it is not known yet whether there will be any more.
func (e *expected) SlowStart(now int64) float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.slow.on || !e.started {
		return 1
	}
	return e.slow.factor(now, e.fleet.slowStart)
}

func (e *expected) Leave() { e.fleet.leave(e) }

var _ Rejoiner = (*expected)(nil)

func (e *expected) Rejoin(left, now int64) { e.fleet.survey.rejoin(e, left, now) }

// resume goes on where e left. A trial that it was to have is another's by now.
func (e *expected) resume(n norms, left, now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.learn(n)
	e.trial.due = false
	if n.real && float64(now-left) >= e.fleet.slowStart {
		e.slow.begin(now)
	}
	e.note()
}
