// Package load turns "how busy is this endpoint" into a number: its cost. Smaller is better. Six metrics ship:
// [Expected], by the time to a success and what is in flight, the default of package balance; [Reported], by that and what servers say
// of their load; [Probing], by that and what some are asked; [PeakEWMA], by the peaks of latency; [Pending], by what is in flight alone;
// and [Constant]. A [Gauge] is what a server knows of its load.
//
// Everything here is a function of its arguments. Time is one of them, in microseconds since the balancer began; nothing
// reads a clock, starts a goroutine or keeps a request, so a simulation can drive the same code as a balancer.
package load

import (
	"errors"
	"time"

	"github.com/belfry-go/belfry"
)

// A Metric says how the cost of endpoints is measured. It is a plain value that several balancers may be configured with;
// what is measured is in the [Fleet] that each of them begins.
type Metric interface {
	// Validate says which number of the metric is out of range.
	Validate() error
	// Fleet begins measuring for one balancer, whose time is 0 now. The metric is valid.
	Fleet() Fleet
}

// A Fleet is the endpoints of one balancer.
type Fleet interface {
	// Timed reports whether time matters to the metric. If not, callers may pass any now and spare the clock.
	Timed() bool
	// Join returns the load of an endpoint that appears at now.
	Join(key string, now int64) Endpoint
}

// An Endpoint measures one endpoint. Its methods may be called concurrently, and with a now that lies a little before
// one that another goroutine has passed. They must not panic.
//
// It does not count what is in flight, because whoever chooses endpoints does so already: that number is given to Cost.
type Endpoint interface {
	// Start notes that a call begins at now.
	Start(now int64) Mark
	// End notes that the call which Start returned mark for came back at now, and how. It is said once per Start,
	// when Call returns: a response may be open longer than that, but how long says nothing about latency.
	End(now int64, mark Mark, class Class)
	// Cost is what another call would cost at now, while held calls are in flight or have room reserved. Reading it
	// changes nothing.
	Cost(now int64, held int) float64
	// Latency is the estimate at now of how long a call takes, 0 if the metric makes none.
	Latency(now int64) time.Duration
	// Back notes that the endpoint can be used again at now, after a time in which it could not.
	Back(now int64)
	// Leave notes that the endpoint is gone: for good, unless it is a [Rejoiner]. Calls may still end after it.
	Leave()
}

// A Rejoiner is an [Endpoint] that can come back after Leave, with what it knows.
type Rejoiner interface {
	Endpoint
	// Rejoin notes that the endpoint is among the others again at now, after it has left. Calls from before may still end.
	Rejoin(left, now int64)
}

// A SlowStarter is an [Endpoint] that costs more for a while when it is new, or has come back.
type SlowStarter interface {
	// SlowStart is how many times more it costs at now: 1 when that is over.
	SlowStart(now int64) float64
}

// A Mark is what an [Endpoint] has to remember about a call, in the hands of its caller: so measuring allocates nothing.
type Mark struct {
	// Start is when the call began.
	Start int64
	// Generation is the metric's own.
	Generation uint64
}

// A Class is what the end of a call says about the latency of the endpoint.
type Class uint8

const (
	// Success is a sample.
	Success Class = iota
	// Failure says nothing about how long a success would have taken, but makes one less likely.
	Failure
	// Cancelled is a lower bound: the call would have taken longer than it was waited for.
	Cancelled
	// Rejected is no sample at all: nothing was sent.
	Rejected
)

// String returns the class in lower case.
func (c Class) String() string {
	switch c {
	case Success:
		return "success"
	case Failure:
		return "failure"
	case Cancelled:
		return "cancelled"
	case Rejected:
		return "rejected"
	}
	return "unknown"
}

// Classify returns the class of a call that ended with err, which the semantics of its protocol judged as kind. What
// they ignore is a rejection if err is one, else the caller left.
func Classify(kind belfry.Kind, err error) Class {
	switch kind {
	case belfry.Success:
		return Success
	case belfry.Failure:
		return Failure
	case belfry.Ignored:
		if errors.Is(err, belfry.ErrRejected) {
			return Rejected
		}
	}
	return Cancelled
}
