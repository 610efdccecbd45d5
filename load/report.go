package load

import (
	"math"
	"time"
)

// A Report is what a server says about how busy it is.
type Report struct {
	// InFlight is how many requests it has in flight, of all its clients. Any other measure of load may stand in its
	// place that is the same for all servers, is 0 when there is nothing to do, and grows by about 1 with a request.
	InFlight float64
	// Latency is how long it takes the server to answer when it has about so many in flight; 0 if it does not say.
	Latency time.Duration
}

// Valid reports whether r may be believed: nothing in it is negative, infinite or no number.
func (r Report) Valid() bool {
	return r.InFlight >= 0 && r.InFlight <= math.MaxInt32 && r.Latency >= 0
}

// A Reporter is an [Endpoint] that wants to know what its server says. Report may be called concurrently.
type Reporter interface {
	Endpoint
	// Report notes what the server said, in an answer to a call that has not ended yet, or in one to a probe. The report is valid.
	Report(now int64, r Report)
}
