package outlier

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/eject"
)

// A Detector compares the endpoints of one fleet. It has no goroutine and no clock: whoever brings the end of a call brings the time, and
// the first that comes after an interval makes the comparison.
type Detector struct {
	cfg Config

	// next is when the next comparison is due, in ticks. It is math.MinInt64 before the first call, math.MaxInt64 while one is made.
	next atomic.Int64

	// mu guards what follows, and of the endpoints what says so. The guard rail is asked under it; its lock comes after.
	mu      sync.Mutex
	members []*Endpoint
	norms   norms
}

// NewDetector returns a Detector without endpoints. It panics with the error of cfg.Validate if there is one.
func NewDetector(cfg Config) *Detector {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	d := &Detector{cfg: cfg.withDefaults()}
	d.next.Store(math.MinInt64)
	return d
}

// An Endpoint is one that a Detector watches. Its methods may be called concurrently.
type Endpoint struct {
	of    *Detector
	guard *eject.Endpoint

	calls, failures atomic.Uint64 // in the present interval
	latency         histogram
	until           atomic.Int64 // ticks when its ejection ends, 0 if it is in

	// Guarded by the Detector's mu.
	last      sample // of the latest complete interval
	times     int    // ejections in a row
	ejections uint64
	spared    uint64
}

// Join returns a new endpoint. guard is its part of the guard rail, nil if nobody is asked.
func (d *Detector) Join(guard *eject.Endpoint) *Endpoint {
	e := &Endpoint{of: d, guard: guard}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.members = append(d.members, e)
	return e
}

// Leave ends the watching of e. Calls may still end after it.
func (e *Endpoint) Leave() {
	d := e.of
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.members, e); i >= 0 {
		d.members = slices.Delete(d.members, i, i+1)
	}
	e.guard.Restore(eject.Outlier)
}

// in reports, without a look at a clock, that e was not ejected lately.
func (e *Endpoint) in() bool { return e.until.Load() == 0 }

// Ejected returns for how long after now e is still ejected, 0 if it is not.
func (e *Endpoint) Ejected(now time.Time) time.Duration {
	until := e.until.Load()
	if until == 0 {
		return 0
	}
	left := until - ticks(now)
	if left <= 0 {
		e.until.CompareAndSwap(until, 0)
		return 0
	}
	return time.Duration(left)
}

// End notes that a call to e ended at now, which it took so long.
func (e *Endpoint) End(now time.Time, took time.Duration, kind belfry.Kind) {
	switch kind {
	case belfry.Success:
		e.calls.Add(1)
		if e.of.cfg.Latency > 0 {
			e.latency.add(took)
		}
	case belfry.Failure:
		e.calls.Add(1)
		e.failures.Add(1)
	case belfry.Ignored:
	}
	e.of.look(now)
}

// look compares the endpoints if that is due, unless somebody else does.
func (d *Detector) look(now time.Time) {
	at := ticks(now)
	due := d.next.Load()
	if at < due || !d.next.CompareAndSwap(due, math.MaxInt64) {
		return
	}
	defer d.next.Store(at + int64(d.cfg.Interval))
	if due == math.MinInt64 {
		return // the first interval begins
	}
	d.tell(d.compare(now))
}

// tell tells the hook, whose panic is lost: it is called within somebody's call.
func (d *Detector) tell(found []Verdict) {
	if d.cfg.OnEject == nil {
		return
	}
	defer func() { _ = recover() }()
	for _, v := range found {
		d.cfg.OnEject(v)
	}
}

// A Verdict is what a comparison has found about an outlier.
type Verdict struct {
	// Endpoint is which.
	Endpoint *Endpoint
	// For is how long it is ejected, 0 if it has to stay in because too many are out.
	For time.Duration
	// Slow says that it is for its latency, else it is for its failures.
	Slow bool
	// Success and Latency are its own, and the median of all.
	Success, MedianSuccess float64
	Latency, MedianLatency time.Duration
}

// compare ends an interval. The worst are ejected first.
func (d *Detector) compare(now time.Time) (found []Verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var samples []sample
	for _, e := range d.members {
		e.last = e.take(d.cfg.MinCalls)
		if e.Ejected(now) == 0 {
			samples = append(samples, e.last)
		}
	}
	d.norms = d.cfg.normsOf(samples)
	type outlier struct {
		e      *Endpoint
		excess float64
		slow   bool
	}
	var outliers []outlier
	for _, e := range d.members {
		switch excess, slow := d.cfg.judge(d.norms, e.last); {
		case e.Ejected(now) > 0:
		case excess > 1:
			outliers = append(outliers, outlier{e, excess, slow})
		case e.last.calls >= uint64(d.cfg.MinCalls):
			e.times = max(e.times-1, 0)
		}
	}
	slices.SortStableFunc(outliers, func(a, b outlier) int { return -cmp.Compare(a.excess, b.excess) })
	for _, o := range outliers {
		found = append(found, Verdict{
			Endpoint: o.e, For: d.eject(o.e, now), Slow: o.slow, Success: o.e.last.success(), MedianSuccess: d.norms.success,
			Latency: time.Duration(o.e.last.latency), MedianLatency: time.Duration(d.norms.latency),
		})
	}
	return found
}

// eject takes e out if it may, and returns for how long. mu is held.
func (d *Detector) eject(e *Endpoint, now time.Time) time.Duration {
	times := d.cfg.times()
	pause := times.Delay(e.times, d.chance())
	if !e.guard.Eject(now, eject.Outlier, now.Add(pause)) {
		e.spared++
		return 0
	}
	e.times++
	e.ejections++
	e.until.Store(ticks(now.Add(pause)))
	return pause
}

// chance returns a random number in [0, 1). mu is held.
func (d *Detector) chance() float64 {
	if d.cfg.Rand == nil {
		return rand.Float64()
	}
	return rand.New(d.cfg.Rand).Float64()
}

// take ends e's interval, and returns what was in it.
func (e *Endpoint) take(minCalls int) sample {
	s := sample{calls: e.calls.Swap(0), failures: e.failures.Swap(0)}
	s.failures = min(s.failures, s.calls) // one may have ended in between
	median, n := e.latency.take()
	if n >= uint64(minCalls) {
		s.latency = float64(median)
	}
	return s
}

// Stats is what there is to know about an endpoint.
type Stats struct {
	// Ejected says that it is out, and Left for how long.
	Ejected bool
	Left    time.Duration
	// Calls, Success and Latency are those of the latest complete interval; Latency is 0 if nobody looks at it, or there were too few calls.
	Calls   uint64
	Success float64
	Latency time.Duration
	// MedianSuccess and MedianLatency are those of all endpoints with enough calls, of which there were Peers.
	MedianSuccess float64
	MedianLatency time.Duration
	Peers         int
	// Ejections counts how often it was ejected, Spared how often it would have been if not too many had been out already.
	Ejections, Spared uint64
	// Refused counts the calls of Acquire that were refused.
	Refused uint64
}

// Stats returns what there is to know now, but Refused.
func (e *Endpoint) Stats() Stats { return e.StatsAt(time.Now()) }

// StatsAt is Stats at a time.
func (e *Endpoint) StatsAt(now time.Time) Stats {
	d := e.of
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Stats{
		Left: e.Ejected(now), Calls: e.last.calls, Latency: time.Duration(e.last.latency),
		MedianSuccess: d.norms.success, MedianLatency: time.Duration(d.norms.latency), Peers: d.norms.peers,
		Ejections: e.ejections, Spared: e.spared,
	}
	s.Ejected = s.Left > 0
	if s.Calls > 0 {
		s.Success = e.last.success()
	}
	return s
}

// start is what ticks are counted from; what matters is only that all are counted from the same.
var start = time.Now()

// ticks is t in nanoseconds, more than 0 for all times that there are clocks for.
func ticks(t time.Time) int64 { return min(int64(t.Sub(start)), 1<<62-1) + 1<<62 }
