package load

// An endpoint that was slow, or failed, costs so much that it gets nothing, and so cannot show that it is well again. A trial is a request
// that it gets all the same.
type trial struct {
	start  int64   // when it was started, while on
	pause  float64 // until the next may be due
	proven int64   // the start of the latest that showed that the endpoint is well
	due    bool    // the next request is one
	on     bool
}

const (
	trialShare  = 1.0 / 500 // of the requests
	mostCredit  = 2         // trials that requests of the past allow
	trialCost   = 0.9       // of what is typical, so that it is not a matter of luck
	firstPause  = 0.1 * second
	lastPause   = 5 * second
	slowTrial   = 2  // how much longer the pause becomes,
	failedTrial = 4  // which costs more than time
	trialTypics = 20 // a pause is no shorter than so many usual answers
)

// begin notes that a call is started.
func (t *trial) begin(now int64) {
	if t.due {
		t.due, t.on, t.start = false, true, now
	}
}

// end reports whether mark is that of the trial, which is then over.
func (t *trial) end(mark Mark) bool {
	if !t.on || t.start != mark.Start {
		return false
	}
	t.on = false
	return true
}

// well notes that a trial succeeded, in a usual time.
func (t *trial) well() { t.pause, t.proven = 0, t.start }

// ill notes that it did not. The pause grows by the factor.
func (t *trial) ill(factor float64) { t.pause = min(factor*max(t.pause, firstPause), lastPause) }

// after is how long an endpoint must have been passed over.
func (t *trial) after(typical float64) float64 {
	return max(t.pause, firstPause, trialTypics*typical)
}
