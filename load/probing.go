package load

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Probing asks a few servers at random how busy they are, besides what they report with their answers, and chooses by the hot-cold rule of
// Prequal (Wydrowski et al., Load is not what you should balance, NSDI 2024). Of those that said lately how busy they are, a server is hot
// that has more in flight than most reports say. Of those that are not, the one goes first that will answer soonest, and if all are hot the one
// with the least in flight. It is asynchronous: probes are sent when a call was, and what they bring is for later calls.
//
// Where fewer than two have said anything within MaxAge, costs decide, which are those of [Reported], and where nobody
// says anything those of [Expected].
//
// Four things are not as in Prequal. Reports that come with answers count like probes. How soon a server will answer is one's own estimate of its
// latency times what is in flight there, and the server's word, the median of its latencies at about so many in flight, only as long as
// one has no answer from it: the median of a few varies too much. Reports fade, own calls since are added, and both figures
// are multiplied by the attempts until a success, so that a server that fails everything in no time is no sinkhole. And small fleets work: where the
// pool has a place for every endpoint it keeps the latest report of each, which may be used any number of times, for there Prequal's formula of how
// often has no value.
//
// Probes cost work. Fleets with fewer endpoints than the pool has places are probed less in proportion, and so is any fleet in proportion to
// how much of its load is that of others: what one does oneself one knows without asking. Nor is a server asked that has reported
// since it is likely to have finished a request.
//
// The zero value is ready to use.
type Probing struct {
	Reported
	// PerCall is how many probes are sent for each call at most. 0 means 3.
	PerCall float64
	// Pool is how many reports are kept, up to 64. 0 means 16.
	Pool int
	// MaxAge is how long they are used. 0 means 1 s.
	MaxAge time.Duration
	// Hot is the share of reported in-flight counts that are not hot. 0 means 0.84.
	Hot float64
}

var _ Metric = Probing{}

const (
	probesPerCall = 3
	poolSize      = 16
	mostPool      = 64
	coldShare     = 0.84
	leastShare    = 0.05 // of the probes that are sent at least, where the load is all one's own
)

// Validate says which field is out of range.
func (p Probing) Validate() error {
	switch {
	case !(p.PerCall >= 0 && p.PerCall <= 100):
		return fmt.Errorf("load: probes per call must be within 0 and 100, got %v", p.PerCall)
	case p.Pool < 0 || p.Pool > mostPool:
		return fmt.Errorf("load: pool must be within 0 and %d, got %d", mostPool, p.Pool)
	case p.MaxAge < 0:
		return fmt.Errorf("load: max age must not be negative, got %v", p.MaxAge)
	case !(p.Hot >= 0 && p.Hot < 1):
		return fmt.Errorf("load: hot must be at least 0 and below 1, got %v", p.Hot)
	}
	return p.Reported.Validate()
}

// Fleet begins a fleet in which nobody has answered or said anything yet. It is a [Chooser].
func (p Probing) Fleet() Fleet {
	f := &probingFleet{reportedFleet: p.Reported.fleet(), maxAge: int64(micros(orElse(p.MaxAge, time.Second)))}
	f.pool.perCall = orNumber(p.PerCall, probesPerCall)
	f.pool.size = int(orNumber(float64(p.Pool), poolSize))
	f.pool.levels.at = orNumber(p.Hot, coldShare)
	return f
}

func orNumber(v, other float64) float64 {
	if v == 0 {
		return other
	}
	return v
}

// A Chooser is a [Fleet] that knows at times which of its endpoints is best, and that wants servers to be asked how busy they are.
// Its methods may be called concurrently.
type Chooser interface {
	Fleet
	// Choose returns the endpoint that another call should go to at now, nil if that is for the costs to say.
	Choose(now int64) Endpoint
	// Probe returns an endpoint whose server is to be asked, now that a call was sent; nil if none is. It is called again until it
	// returns nil. What the server says is told by [Reporter]'s Report, and nothing if it does not answer.
	Probe(now int64, random rand.Source) Endpoint
}

// A probingFleet is the endpoints of one balancer, and the pool of those that have said lately how busy they are.
type probingFleet struct {
	*reportedFleet
	maxAge int64
	out    atomic.Int64 // calls that have not come back
	fresh  atomic.Int64 // how long a report is so new that there is nothing to ask
	pool   pool
}

var _ Chooser = (*probingFleet)(nil)

func (f *probingFleet) Join(_ string, now int64) Endpoint {
	e := &probing{fleet: f}
	e.reported.fleet = f.reportedFleet
	f.join(&e.reported, now)
	f.pool.join(e)
	return e
}

// Choose applies the hot-cold rule. No lock is held while the endpoints are looked at: a pool that changes meanwhile does no harm.
func (f *probingFleet) Choose(now int64) Endpoint {
	var candidates [mostPool]*probing
	n, hot := f.pool.candidates(&candidates, now-f.maxAge)
	if n < 2 {
		return nil
	}
	var best, worst standing
	for i, e := range candidates[:n] {
		s := e.stand(now, hot)
		if i == 0 || s.before(best) {
			best = s
		}
		if i == 0 || worst.before(s) {
			worst = s
		}
	}
	f.pool.used(best.of, worst.of)
	return best.of
}

// Probe pays for probes by the calls that were sent since.
func (f *probingFleet) Probe(now int64, random rand.Source) Endpoint {
	if e := f.pool.probe(now, min(f.fresh.Load(), f.maxAge), f.maxAge, random); e != nil {
		return e
	}
	return nil
}

// strangers is which part of what is in flight at the servers is not one's own.
func (f *probingFleet) strangers(n int) float64 {
	if !f.usual.known() {
		return 1
	}
	others := f.usual.read()
	own := float64(f.out.Load()) / float64(max(n, 1))
	return max(others/(others+own+1e-9), leastShare)
}

// A probing is the load of one endpoint that may be asked.
type probing struct {
	reported
	fleet *probingFleet

	// Guarded by the mu of expected.
	latency float64 // what it said an answer takes, when it last said so; 0 if it did not

	// Guarded by the pool.
	member int   // its place among all endpoints
	place  int   // and in the pool, or nowhere
	asked  int64 // when it was last probed, if ever
	heard  int64 // when it last reported, if ever
}

var _ Reporter = (*probing)(nil)

func (e *probing) Start(now int64) Mark {
	e.fleet.out.Add(1)
	e.fleet.pool.earn(e.fleet)
	return e.reported.Start(now)
}

func (e *probing) End(now int64, mark Mark, class Class) {
	e.fleet.out.Add(-1)
	e.reported.End(now, mark, class)
}

func (e *probing) Report(now int64, r Report) {
	e.reported.Report(now, r)
	e.mu.Lock()
	e.latency = micros(r.Latency)
	e.fleet.fresh.Store(int64(1 / e.fleet.trustFor(e.next.typical, e.fleet.usual.read())))
	e.mu.Unlock()
	e.fleet.pool.add(e, now, r.InFlight)
}

func (e *probing) Leave() {
	e.fleet.pool.leave(e)
	e.reported.Leave()
}

// Rejoin brings e back with what it has measured. What its server said is too old to choose by.
func (e *probing) Rejoin(left, now int64) {
	e.reported.Rejoin(left, now)
	e.fleet.pool.join(e)
}

// A standing is what the hot-cold rule compares.
type standing struct {
	of       *probing
	hot      bool
	inFlight float64
	latency  float64
}

// before reports whether a call should rather go to a than to b.
func (a standing) before(b standing) bool {
	switch {
	case a.hot != b.hot:
		return b.hot
	case a.hot:
		return a.inFlight < b.inFlight
	}
	return a.latency < b.latency
}

// stand says how e stands at now, when those are hot that have more than so many in flight.
func (e *probing) stand(now int64, hot float64) standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := standing{of: e}
	attempts := e.attempts(now)
	line := e.othersAt(now) + float64(e.present.all())
	s.inFlight = (line+1)*attempts - 1
	s.latency = e.believe(now, e.next.baseAt(now, e.expected.fleet.decay)) * (line + 1) * attempts
	if !e.past.known() && e.latency > 0 {
		s.latency = e.latency * attempts
	}
	s.hot = s.inFlight > hot
	return s
}
