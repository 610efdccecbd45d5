package balance

import (
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/pick"
)

// A Decision is one choice of an endpoint that gave a permit. Choices for which none had room are not kept.
type Decision struct {
	// Number counts the decisions of a Balancer, from 1.
	Number uint64
	// At is when the endpoint was chosen.
	At time.Time
	// Attempt is 1, and one more for each endpoint that the request was given to before.
	Attempt int
	// By is how the endpoint was found.
	By Means
	// Candidates is the endpoints that were drawn or asked, in the order in which they were to be asked. Of many that had no room, the first three
	// stand here; Others is how many there were besides.
	Candidates []Candidate
	Others     int
	// Chosen is the index of the one that was chosen.
	Chosen int
	// Ended is what became of the permit, and Took how long its call took to return, 0 if it did not yet.
	Ended Ending
	Took  time.Duration
}

// A Candidate is an endpoint that might have been chosen, as it was just before.
type Candidate struct {
	Key, Addr string
	// Cost is what was compared, and Latency the metric's estimate, 0 if it makes none. Other calls may have come between the comparison and this.
	Cost    float64
	Latency time.Duration
	// Held is how many calls and permits were out there.
	Held   int
	Answer Answer
}

// Means is how an endpoint was found.
type Means uint8

// How an endpoint may be found.
const (
	// ByDraw is the better of two at random, or, if these had no room, another.
	ByDraw Means = iota
	// ByMetric is what the metric suggests.
	ByMetric
	// ByOrder is the order of the key of the call.
	ByOrder
	// ByWaiting had no room, and was the first to have some again for a caller in line.
	ByWaiting
	// ByPanic is ejected, and there was no other.
	ByPanic

	means
)

// String returns m in a word.
func (m Means) String() string {
	switch m {
	case ByDraw:
		return "draw"
	case ByMetric:
		return "metric"
	case ByOrder:
		return "key"
	case ByWaiting:
		return "wait"
	case ByPanic:
		return "panic"
	case means:
	}
	return "unknown"
}

// An Answer is what a candidate said.
type Answer uint8

// What a candidate may say.
const (
	// NotAsked was drawn, and another had room before it.
	NotAsked Answer = iota
	// Refused had no room.
	Refused
	// Granted had.
	Granted

	answers
)

// String returns a in words.
func (a Answer) String() string {
	switch a {
	case NotAsked:
		return "not asked"
	case Refused:
		return "refused"
	case Granted:
		return "granted"
	case answers:
	}
	return "unknown"
}

// An Ending is what became of a permit.
type Ending uint8

// What may become of a permit.
const (
	// Reserved is not used yet.
	Reserved Ending = iota
	// Returned was given back without a call.
	Returned
	// InFlight has a call that did not return yet.
	InFlight
	// Succeeded, Failed and WasIgnored have one that did.
	Succeeded
	Failed
	WasIgnored

	endings
)

// String returns e in words.
func (e Ending) String() string {
	switch e {
	case Reserved:
		return "reserved"
	case Returned:
		return "returned"
	case InFlight:
		return "in flight"
	case Succeeded:
		return "success"
	case Failed:
		return "failure"
	case WasIgnored:
		return "ignored"
	case endings:
	}
	return "unknown"
}

func endingOf(kind belfry.Kind) Ending {
	switch kind {
	case belfry.Success:
		return Succeeded
	case belfry.Failure:
		return Failed
	case belfry.Ignored:
	}
	return WasIgnored
}

// Decisions returns the latest Config.Decisions choices, the oldest first; nil if that is 0. Of permits for one endpoint that are out at the same
// time nobody can tell which is which: calls and releases count for the newest of them.
func (b *Balancer[Req, Res]) Decisions() []Decision {
	if b.ring == nil {
		return nil
	}
	return b.ring.read()
}

// A draft is a decision that is being made, on the stack of who makes it. All methods do nothing if it is nil, as it is where nobody keeps decisions.
type draft struct {
	now     int64 // for costs
	by      Means
	attempt int32
	n       int32 // of all
	asked   int32 // the one of all that was asked last
	others  int32
	all     [kept]Candidate
}

// kept is how many candidates are. The last place is for whoever was asked last.
const kept = 4

// found says how what is asked from now on was found.
func (d *draft) found(by Means) {
	if d != nil {
		d.by = by
	}
}

// weigh adds ep as it is now, unless it is there. own is how much of what is held is for the decision itself.
func (b *Balancer[Req, Res]) weigh(d *draft, ep *endpoint[Req, Res], own int) {
	if d == nil {
		return
	}
	for i := range d.n {
		if c := &d.all[i]; c.Key == ep.key && c.Addr == ep.addr {
			d.asked = i
			return
		}
	}
	if d.n == kept {
		d.others++
	} else {
		d.n++
	}
	d.asked = d.n - 1
	holders, _ := ep.Held()
	d.all[d.asked] = Candidate{
		Key: ep.key, Addr: ep.addr, Held: holders - own,
		Cost: ep.load.Cost(d.now, ep.Work()-own), Latency: ep.load.Latency(d.now),
	}
}

// answer notes what the one says that was weighed last.
func (d *draft) answer(a Answer) {
	if d != nil {
		d.all[d.asked].Answer = a
	}
}

// weighBoth adds two that were drawn, either of which may be pick.None.
func (b *Balancer[Req, Res]) weighBoth(d *draft, s *set[Req, Res], first, second int) {
	if d == nil {
		return
	}
	for _, i := range [...]int{first, second} {
		if i != pick.None {
			b.weigh(d, s.eps[i], 0)
		}
	}
}
