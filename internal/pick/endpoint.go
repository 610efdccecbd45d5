// Package pick chooses endpoints: the better of two at random, and in which order to ask the others when those have no
// room. It is a function of the time it is given and of a random source, so that a balancer, its tests and a simulation run
// the same code.
package pick

import "sync/atomic"

// A Load says what another call to an endpoint would cost at now, with held calls there or expected. Smaller is better.
type Load interface {
	Cost(now int64, held int) float64
}

// An Endpoint is what choosing has to know about an endpoint: its load, how many hold it, and whether it seemed to have
// room when last seen.
//
// Whoever wants a permit of the endpoint holds it first, and stops holding it when the call is over or the
// permit given back. So a retired endpoint is known to be out of use when the last holder lets go.
type Endpoint struct {
	state atomic.Uint64
	begun atomic.Uint64 // calls
	extra atomic.Int64  // work of the calls in flight beyond one for each
	hint  atomic.Bool
	away  atomic.Bool

	load            Load
	traits          atomic.Pointer[Traits]
	failed, ignored atomic.Uint64 // calls
}

// Traits are what an endpoint is chosen by beside its load. The zero Traits are those of an endpoint like any other.
type Traits struct {
	// Weight is how many times as many calls the endpoint should get as one of weight 1; less than 1 means 1.
	Weight int
	// Zone and Host are where it is, empty if nobody knows. What is in the same place fails together.
	Zone, Host string
	// Near says that it is preferred to others of the same Priority.
	Near bool
	// ID is a hash of what it is known by.
	ID uint64
	// Priority is its rank; less than 0 means 0. Higher numbers stand in for lower ones.
	Priority int
}

// The state is one word, so that it can never be seen half changed: three flags, the count of holders, and above them how many calls were
// a success, which wraps around. Calls in flight are those that have begun less those that have ended, a number so much smaller than what
// that count can hold that it is right all the same.
const (
	watched  = uint64(1) << iota // somebody waits there for a permit
	retired                      // nobody shall hold it any more
	over                         // and the last holder has been told
	aHolder                      // the lowest bit of 30
	aSuccess = aHolder << 30     // the lowest bit of 31

	flags   = aHolder - 1
	holders = aSuccess - aHolder
)

// Init makes e the endpoint with load, held by nobody. It is called once, before anything else.
func (e *Endpoint) Init(load Load) { e.load = load }

// Characterise gives e other traits. Groups that were made before keep to the old ones.
func (e *Endpoint) Characterise(t Traits) { e.traits.Store(&t) }

// Traits returns what e was given.
func (e *Endpoint) Traits() Traits {
	if t := e.traits.Load(); t != nil {
		return *t
	}
	return Traits{}
}

// Hold takes hold of e. It reports false if e is retired: then let go of it at once.
func (e *Endpoint) Hold() bool {
	// Counted first and looked at after: the other way round the endpoint could be retired in between.
	return e.state.Add(aHolder)&retired == 0
}

// Drop lets go of e without a call. It reports whether e is retired and nobody holds it any more.
func (e *Endpoint) Drop() (last bool) { return e.ended(e.state.Add(^(aHolder - 1))) }

// Watch holds e without being counted, for the one that waits there for a permit. It reports false if e is
// retired: then end it at once.
func (e *Endpoint) Watch() bool { return e.state.Or(watched)&retired == 0 }

// Unwatch ends a Watch. It reports whether e is retired and nobody holds it any more.
func (e *Endpoint) Unwatch() (last bool) { return e.ended(e.state.And(^watched) &^ watched) }

// Take makes the one that watches a holder.
func (e *Endpoint) Take() { e.state.Add(aHolder - watched) }

// Begin notes that a holder's call is now in flight.
func (e *Endpoint) Begin() { e.begun.Add(1) }

// Finish ends a holder's call, a success, and lets go of e. It reports whether e is retired and nobody holds it any more.
func (e *Endpoint) Finish() (last bool) { return e.ended(e.state.Add(aSuccess - aHolder)) }

// Fail is Finish for a call that was a failure. For the moment until it has let go as well, e is held by one more who has no call.
func (e *Endpoint) Fail() (last bool) {
	e.failed.Add(1)
	return e.Drop()
}

// Ignore is Fail for a call that says nothing about e.
func (e *Endpoint) Ignore() (last bool) {
	e.ignored.Add(1)
	return e.Drop()
}

// Retire ends taking hold of e. It reports whether nobody holds it. A second Retire reports false.
func (e *Endpoint) Retire() (last bool) {
	return e.ended(e.state.Or(retired) | retired)
}

// ended reports, once, that state is that of a retired endpoint without holders.
func (e *Endpoint) ended(state uint64) bool {
	return state&(flags|holders) == retired && e.state.CompareAndSwap(state, state|over)
}

// Counts is what there is to count of an endpoint.
type Counts struct {
	// Holders is how many hold it, and Calls how many of them have a call in flight.
	Holders, Calls int
	// Successes, Failures and Ignored is how many calls ended so.
	Successes, Failures, Ignored uint64
}

// Count returns the Counts of e. None of them is ever less than it is, nor do the last three ever fall.
func (e *Endpoint) Count() Counts {
	for {
		// What ends is read before what begins.
		c := Counts{Failures: e.failed.Load(), Ignored: e.ignored.Load()}
		state := e.state.Load()
		others := e.begun.Load() - c.Failures - c.Ignored
		if e.state.Load() != state {
			continue
		}
		calls := (others*aSuccess - state&^(aSuccess-1)) / aSuccess // of the latter, less what has wrapped around
		c.Holders, c.Calls, c.Successes = int(state&holders/aHolder), int(calls), others-calls
		c.Calls = min(c.Calls, c.Holders)
		return c
	}
}

// Held returns how many hold e, and how many of them have a call in flight.
func (e *Endpoint) Held() (holders, calls int) {
	c := e.Count()
	return c.Holders, c.Calls
}

// Cost returns what another call would cost at now.
func (e *Endpoint) Cost(now int64) float64 {
	return e.load.Cost(now, e.Work())
}

// Work returns how much is there to do: one for each holder, and what [Endpoint.Burden] has added.
func (e *Endpoint) Work() int { return int(e.state.Load()&holders/aHolder) + int(e.extra.Load()) }

// Burden adds work that a call is beyond one, or takes it away again.
func (e *Endpoint) Burden(extra int) { e.extra.Add(int64(extra)) }

// Hint notes whether e seems to have room.
func (e *Endpoint) Hint(room bool) {
	if e.hint.Load() != room { // most of the time it is so already, and the cache line stays shared
		e.hint.Store(room)
	}
}

// Away notes whether e was passed over because it is not to be asked, and reports whether it was before.
func (e *Endpoint) Away(away bool) (before bool) { return e.away.Swap(away) }

// IsAway reports whether e was passed over, and not asked again since.
func (e *Endpoint) IsAway() bool { return e.away.Load() }

// Hinted reports whether e seems to have room.
func (e *Endpoint) Hinted() bool { return e.hint.Load() }
