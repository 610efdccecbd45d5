package balance

import (
	"time"

	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/load"
)

// A State is where an endpoint is in its life.
type State uint8

const (
	// Dialling has no service yet.
	Dialling State = iota
	// BackingOff waits before it is dialled, or its Acquire is tried, again.
	BackingOff
	// NotReady has a service that had no room when last asked.
	NotReady
	// Ready had room when last asked or used.
	Ready
	// Closed has a service that is closed for good.
	Closed
	// Draining is removed, and has calls in flight or permits out.
	Draining

	states
)

// String returns the state in words.
func (s State) String() string {
	switch s {
	case Dialling:
		return "dialling"
	case BackingOff:
		return "backing off"
	case NotReady:
		return "not ready"
	case Ready:
		return "ready"
	case Closed:
		return "closed"
	case Draining:
		return "draining"
	case states:
	}
	return "unknown"
}

// Stats is what there is to see of a Balancer.
type Stats struct {
	// Endpoints is all endpoints in order of appearance, removed ones too until their last call is over. While a
	// key moves to another address it is there twice.
	Endpoints []EndpointStats
	// Waiting is the number of callers in line.
	Waiting int
	// Discovery is the last error of the source, nil if it has made a change since.
	Discovery error
	// Probes is what there is to see of probes.
	Probes ProbeStats
	// Remembered is how many removed endpoints are remembered, lest they come back.
	Remembered int
	// Final says that the source has ended.
	Final bool
	// Guard is what the guard rail has counted.
	Guard eject.Stats
	// Panics counts the picks for which drawing again and again showed ejected endpoints only.
	Panics Panics
}

// Panics counts picks for which drawing showed ejected endpoints only, by what they found when they looked at all. Four pairs are drawn, or one where endpoints
// differ in weight, zone or priority, or keys count.
type Panics struct {
	// Ready found one that is in.
	Ready uint64
	// Probing found none that is in or may be soon, and asked one that was to be tried again anyway.
	Probing uint64
	// Failed asked the one whose latest failure, or such a call, was the longest ago.
	Failed uint64
}

// EndpointStats is what there is to see of an endpoint.
type EndpointStats struct {
	Key, Addr string
	State     State
	// Weight, at least 1, Zone and Priority are what it is chosen by, as its source says.
	Weight   int
	Zone     string
	Priority int
	// InFlight is the number of calls that are not over.
	InFlight int
	// Reserved is the number of permits granted and not spent, and of callers asking for one right now.
	Reserved int
	// Work is InFlight and Reserved, and what the calls in flight are more work than one each, by [belfry.Semantics].Cost.
	Work int
	// Cost is what choosing compares; 0 if it was not dialled yet.
	Cost float64
	// Latency is what the metric estimates that a call takes, 0 if it does not.
	Latency time.Duration
	// SlowStart is how many times more it costs because it is new or has come back: 1 if it does not, 0 if the metric knows no such thing.
	SlowStart float64
	// Successes, Failures and Ignored count the calls that are over, a streamed one when its response has ended: with InFlight they are all calls.
	Successes, Failures, Ignored uint64
	// Reports is how often the server said how busy it is, and BadReports how often that was nothing to be believed.
	Reports, BadReports uint64
	// Err is why it is not ready: the last error of dialling it or of its Acquire. Nil if it was ready after that.
	Err error
	// Failure is the error of the last call that failed with one, whatever came after.
	Failure error
	// Ejected says why the endpoint is out, if it is, and Until for how long at least. One that is out is asked only when there is no other.
	Ejected []eject.Why
	Until   time.Duration
}

// Stats returns what there is to see. It costs a look at every endpoint.
func (b *Balancer[Req, Res]) Stats() Stats {
	now, at := b.now(), time.Now()
	b.mu.Lock()
	s := Stats{Waiting: b.waiters.Len(), Probes: b.probes.stats(), Discovery: b.source, Final: b.ended}
	eps := make([]*endpoint[Req, Res], len(b.listed))
	copy(eps, b.listed)
	for _, ep := range eps {
		s.Endpoints = append(s.Endpoints, EndpointStats{Key: ep.key, Addr: ep.addr, State: ep.state(), Err: ep.err})
		t := ep.Traits()
		last := &s.Endpoints[len(s.Endpoints)-1]
		last.Weight, last.Zone, last.Priority = t.Weight, t.Zone, t.Priority
	}
	dialled := make([]bool, len(eps))
	for i, ep := range eps {
		dialled[i] = ep.svc != nil
	}
	b.mu.Unlock()
	s.Remembered = b.memory.size(at)
	s.Guard = b.guard.Stats(at)
	s.Panics = Panics{b.panics.ready.Load(), b.panics.probing.Load(), b.panics.failed.Load()}
	for i, ep := range eps { // the metric is not asked under the lock
		ep.measure(&s.Endpoints[i], now, dialled[i])
		s.Endpoints[i].Ejected, s.Endpoints[i].Until = ep.guard.Reasons(at), ep.guard.Until(at)
	}
	return s
}

// measure adds what is counted without the balancer's mu.
func (ep *endpoint[Req, Res]) measure(s *EndpointStats, now int64, dialled bool) {
	c := ep.Count()
	s.InFlight, s.Reserved, s.Work = c.Calls, c.Holders-c.Calls, ep.Work()
	s.Successes, s.Failures, s.Ignored = c.Successes, c.Failures, c.Ignored
	s.Reports, s.BadReports = ep.reports.good.Load(), ep.reports.bad.Load()
	if err := ep.failure.Load(); err != nil {
		s.Failure = *err
	}
	if dialled {
		s.Cost, s.Latency = ep.Cost(now), ep.load.Latency(now)
		if slow, ok := ep.load.(load.SlowStarter); ok {
			s.SlowStart = slow.SlowStart(now)
		}
	}
}

// state is ep's as it is shown. mu is held.
func (ep *endpoint[Req, Res]) state() State {
	switch ep.phase {
	case dialling:
		return Dialling
	case backingOff:
		if !ep.Hinted() { // else the request path has found it ready before its driver did
			return BackingOff
		}
	case lost:
		return Closed
	case removed:
		return Draining
	case up:
	}
	if ep.Hinted() {
		return Ready
	}
	return NotReady
}
