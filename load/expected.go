package load

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// Expected measures how long it takes until a success, in microseconds, times the requests in flight and this one:
//
//	max(latency, what is in flight says) × attempts until a success × (in flight + 1)
//
// It is the default of package balance. Where servers are equal it balances by requests in flight, where they are not by latency, and it finds
// out which by itself.
//
// The latency of an endpoint is the mean of its successes, older ones weighing less, drawn toward the median of the fleet (shrinkage, after
// James and Stein). How far it is drawn depends on how much the means of the endpoints differ, beyond what the scatter
// of single requests explains: if all servers are alike and only their answers vary, every endpoint counts as typical, and what is in
// flight decides alone. With time a mean without news goes back to the median. A tenth of what the latest answer was off is added for about as long
// as a request takes, since who else's requests wait at a server shows there first.
//
// A server that has changed is not averaged with what it was. Where several answers in a row take longer than they should (Page's cumulative
// sum test), only they count.
//
// What is in flight is evidence. A request seen at a random moment is on average halfway through, hence twice the mean age of the
// calls that are out; what scatter explains is taken off. Only calls that no later one has overtaken count: one stuck request says little about
// an endpoint that answers all others, and when it is 20 times as old as a usual answer it is left out of the count of requests in flight, too.
// Evidence is left out of the cost, so that the endpoint is tried once more, when nothing was started there for 10 s or 20 of its means.
//
// Bad news is verified, ever more rarely. An endpoint that costs more than is typical without anything in flight, and that was passed
// over for a while, gets a request as if it were typical. If that trial succeeds, it is all that is known from then on. Pauses between
// trials grow from 0.1 s to 5 s while trials are slow (twofold) or fail (fourfold), and one request in 500 at most is a trial.
//
// How a call ended counts. Only a success can lower the latency. A failure counts as at least the median of the
// fleet, and against the endpoint: attempts until a success is one over the share of successes, where older
// calls weigh less and a tenth of a success is taken for granted. When failures in a row can hardly be chance (two, for an endpoint that
// never fails), what was good before is forgotten. A cancelled call is a lower bound, and one that was never sent
// is nothing.
//
// A newcomer is taken to be typical, but begins slowly: from its first request on its cost is divided by the square of its age as a part of SlowStart, a
// tenth at least, and until its first answer a second request costs ten times as much, for 1 s or ten medians. All that is void for endpoints that
// were there before any had answered, whose latency is taken to be Initial. One that comes back ([Rejoiner]) after less than SlowStart goes on where it
// was, in the middle of a slow start too; after longer it keeps what is known of it, and begins slowly again.
//
// The zero value is ready to use.
type Expected struct {
	// Decay is how long a sample takes to weigh 1/e of what it did, and a mean without news to go as much of its way
	// back to the median. 0 means 10 s.
	Decay time.Duration
	// Initial is the latency of endpoints before any has answered. 0 means 30 ms.
	Initial time.Duration
	// SlowStart is how long an endpoint that joins the others, or comes back to them, costs more. 0 means 10 s; 1 ns is as
	// good as none.
	SlowStart time.Duration
}

var _ Metric = Expected{}

// Validate says which field is out of range.
func (x Expected) Validate() error {
	switch {
	case x.Decay < 0:
		return fmt.Errorf("load: decay must not be negative, got %v", x.Decay)
	case x.Initial < 0:
		return fmt.Errorf("load: initial must not be negative, got %v", x.Initial)
	case x.SlowStart < 0:
		return fmt.Errorf("load: slow start must not be negative, got %v", x.SlowStart)
	}
	return nil
}

// Fleet begins a fleet in which nobody has answered yet.
func (x Expected) Fleet() Fleet { return x.fleet() }

func (x Expected) fleet() *expectedFleet {
	f := &expectedFleet{
		decay:     decayOver(orElse(x.Decay, 10*time.Second)),
		slowStart: micros(orElse(x.SlowStart, 10*time.Second)),
	}
	f.survey.norms = norms{typical: micros(orElse(x.Initial, 30*time.Millisecond)), spread: unlike}
	return f
}

func orElse(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return d
}

// An expectedFleet is the endpoints of one balancer, and what is usual among them.
type expectedFleet struct {
	decay
	slowStart float64
	next      atomic.Int64 // when the next survey is due; math.MaxInt64 while one is made
	survey    survey
}

func (f *expectedFleet) Timed() bool { return true }

func (f *expectedFleet) Join(_ string, now int64) Endpoint {
	e := &expected{fleet: f}
	f.survey.join(e, now)
	return e
}

func (f *expectedFleet) leave(e *expected) { f.survey.leave(e) }

// look makes the survey that is due, unless somebody else does.
func (f *expectedFleet) look(now int64) {
	if due := f.next.Load(); now >= due && f.next.CompareAndSwap(due, math.MaxInt64) {
		f.next.Store(f.survey.look(now, f.decay))
	}
}
