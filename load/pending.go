package load

import "time"

// Pending is the number of requests in flight, reserved room included. It knows no latency, needs no clock, and is the
// better metric where equal servers answer after very unequal times: there, peaks of latency are noise.
type Pending struct{}

var _ Metric = Pending{}

// Validate finds nothing: there are no numbers.
func (Pending) Validate() error { return nil }

// Fleet returns a fleet of counts.
func (Pending) Fleet() Fleet { return pending{} }

// A pending is a fleet and each of its endpoints: there is nothing to remember.
type pending struct{}

func (pending) Timed() bool                    { return false }
func (pending) Join(string, int64) Endpoint    { return pending{} }
func (pending) Start(int64) Mark               { return Mark{} }
func (pending) End(int64, Mark, Class)         {}
func (pending) Cost(_ int64, held int) float64 { return float64(held) }
func (pending) Latency(int64) time.Duration    { return 0 }
func (pending) Leave()                         {}
func (pending) Back(int64)                     {}
