package load

import (
	"fmt"
	"sync"
	"time"
)

// Reported is [Expected] with what servers say of their load, in answers to calls: to one's own requests in flight come those
// of everybody else.
//
//	latency × attempts until a success × (own in flight + those of others + 1)
//
// How many others have there is what the server reported less one's own at the time. It is old news soon: it fades to the mean of
// the fleet, which an endpoint that has said nothing is taken to have, too. Where nobody reports, there are no others, and nothing is left but
// Expected. The mean counts reports, the latest 64 of which make up most of it.
//
// What is in flight at a server says more of who waits there than what the latest answer was off, so that is left out.
//
// Reported balances better than Expected where a server has many clients, each of which has few requests there; [Probing] does better
// still. The zero value is ready to use.
type Reported struct {
	Expected
	// Trust is how long a report takes to weigh 1/e of what it did. 0 means as long as it takes until one more of the
	// requests that are usually in flight is answered: their latency divided by their number (Little's law), 64 at most.
	Trust time.Duration
}

var _ Metric = Reported{}

// Validate says which field is out of range.
func (r Reported) Validate() error {
	if r.Trust < 0 {
		return fmt.Errorf("load: trust must not be negative, got %v", r.Trust)
	}
	return r.Expected.Validate()
}

// Fleet begins a fleet in which nobody has answered or said anything yet.
func (r Reported) Fleet() Fleet { return r.fleet() }

func (r Reported) fleet() *reportedFleet {
	return &reportedFleet{expectedFleet: r.Expected.fleet(), trust: micros(r.Trust)}
}

// A reportedFleet is the endpoints of one balancer, and what they usually report.
type reportedFleet struct {
	*expectedFleet
	trust float64
	usual average
}

func (f *reportedFleet) Join(_ string, now int64) Endpoint {
	e := &reported{fleet: f}
	f.join(e, now)
	return e
}

func (f *reportedFleet) join(e *reported, now int64) {
	e.expected.fleet = f.expectedFleet
	f.survey.join(&e.expected, now)
}

// A reported is the load of one endpoint that may report.
type reported struct {
	expected
	fleet *reportedFleet

	// Guarded by the mu of expected.
	others float64 // requests in flight there that are not one's own, when it last said so,
	said   int64   // and when that was
	known  bool    // it has said so
}

var _ Reporter = (*reported)(nil)

func (e *reported) Report(now int64, r Report) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.others, e.said, e.known = max(r.InFlight-float64(e.present.all()), 0), now, true
	e.fleet.usual.add(e.others)
}

func (e *reported) Cost(now int64, held int) float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cost(now, held, e.othersAt(now), e.next.baseAt(now, e.expected.fleet.decay))
}

// othersAt is how many requests of others are likely in flight there. mu is held.
func (e *reported) othersAt(now int64) float64 {
	usual := e.fleet.usual.read()
	if !e.known {
		return usual
	}
	return usual + (e.others-usual)*e.fleet.trustFor(e.next.typical, usual).fade(e.said, now)
}

// trustFor is how fast a report fades where answers take typical, and others usually have so many requests.
func (f *reportedFleet) trustFor(typical, usual float64) decay {
	if f.trust != 0 {
		return decay(1 / f.trust)
	}
	return decay(min(usual+1, mostAnswers) / typical)
}

// mostAnswers is how many answers are expected at most while one is waited for: a server may report in other units than requests.
const mostAnswers = 64

// An average is the mean of numbers, the latest of which count most.
type average struct {
	// mu guards the rest, and nothing is called under it.
	mu   sync.Mutex
	n    float64
	mean float64
}

// memory is how many numbers make up most of an average.
const memory = 64

func (a *average) add(x float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n = min(a.n+1, memory)
	a.mean += (x - a.mean) / a.n
}

func (a *average) known() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n > 0
}

func (a *average) read() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mean
}
