package demo

import (
	"encoding/json"
	"io"
	"math"
	"time"
)

// minForP999 is the number of answers from which on the 99.9th percentile is told: five requests beyond it.
const minForP999 = 5000

// Milliseconds is a duration as the results tell it, exact to the microsecond.
type Milliseconds float64

func milliseconds(d time.Duration) Milliseconds {
	return Milliseconds(math.Round(float64(d)/1e3) / 1e3)
}

// A Result is what the demo found, in the form of --json.
type Result struct {
	Scenario string         `json:"scenario"`
	Policies []PolicyResult `json:"policies"`
}

// A PolicyResult is what one policy did with the load. Percentiles are over all answers, each counted from when its request
// was due; one that too few answers back is nil.
type PolicyResult struct {
	Name     string        `json:"name"`
	Requests int64         `json:"requests"`
	Errors   int64         `json:"errors"`
	P50      *Milliseconds `json:"p50_ms"`
	P90      *Milliseconds `json:"p90_ms"`
	P99      *Milliseconds `json:"p99_ms"`
	P999     *Milliseconds `json:"p999_ms"`
	Figures
	// Lab is what the same scenario gives in virtual time; nil if that would take long.
	Lab *LabResult `json:"lab"`
	// Endpoints are all servers, the odd ones last.
	Endpoints []EndpointResult `json:"endpoints"`

	firstError error
	late       time.Duration // 99 % of the requests were sent within this time after they were due
}

// Figures are what a scenario is about.
type Figures struct {
	// OddShare is which part of the requests went to the odd servers, among those that were due when it matters.
	OddShare float64 `json:"odd_share"`
	// Stuck is how many were answered after more than half a second, Failed how many got the failure that the scenario has
	// for them. In the lab they are means over several seeds.
	Stuck  float64 `json:"stuck"`
	Failed float64 `json:"failed"`
}

// A LabResult is the means over several seeds.
type LabResult struct {
	P50 Milliseconds `json:"p50_ms"`
	P99 Milliseconds `json:"p99_ms"`
	Figures
}

// An EndpointResult is the part of the answers that came from one server. MaxLatency is how long it takes at most while all is well.
type EndpointResult struct {
	Label      string       `json:"label"`
	MaxLatency Milliseconds `json:"max_latency_ms"`
	Share      float64      `json:"share"`
}

// Failed reports whether anything went wrong that was not to.
func (r Result) Failed() bool {
	for _, p := range r.Policies {
		if p.Errors > 0 {
			return true
		}
	}
	return false
}

// WriteJSON writes r as one indented object.
func (r Result) WriteJSON(w io.Writer) error {
	if r.Policies == nil {
		r.Policies = []PolicyResult{}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
