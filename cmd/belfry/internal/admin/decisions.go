package admin

import (
	"net/http"
	"time"

	"github.com/belfry-go/belfry/balance"
)

// Decisions is what /api/decisions answers: the latest choices of an endpoint, the oldest first.
type Decisions struct {
	Time time.Time `json:"time"`
	// Kept says that decisions are kept. If not there are none, whatever was chosen.
	Kept      bool       `json:"kept"`
	Decisions []Decision `json:"decisions"`
}

// A Decision is one choice.
type Decision struct {
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	// Attempt is 1 for the first attempt of a request.
	Attempt int `json:"attempt"`
	// By is draw, metric, key, wait or panic: see [balance.Means].
	By string `json:"by"`
	// Candidates were drawn or asked, in that order. Others is how many more were asked, and had no room.
	Candidates []Candidate `json:"candidates"`
	Others     int         `json:"others,omitempty"`
	// Chosen is the key of the one that was chosen.
	Chosen string `json:"chosen"`
	// Ended is reserved, returned, in flight, success, failure or ignored; Took is how long it took until an answer began, null if it did not.
	Ended string   `json:"ended"`
	Took  *float64 `json:"took_ms"`
}

// A Candidate is an endpoint as it was when it might have been chosen.
type Candidate struct {
	Endpoint string `json:"endpoint"`
	// Cost is what was compared, Latency what a request was expected to take; null if nobody knows.
	Cost    *float64 `json:"cost"`
	Latency *float64 `json:"latency_ms"`
	Held    int      `json:"held"`
	// Answer is granted, refused or not asked.
	Answer string `json:"answer"`
}

func (a *Admin) serveDecisions(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(encode(decisionsOf(a.source.Decisions(), time.Now())), '\n'))
}

func decisionsOf(all []balance.Decision, now time.Time) Decisions {
	to := Decisions{Time: now.UTC().Truncate(time.Millisecond), Kept: all != nil, Decisions: make([]Decision, len(all))}
	for i, d := range all {
		to.Decisions[i] = Decision{
			Number: d.Number, At: d.At.UTC().Truncate(time.Microsecond), Attempt: d.Attempt, By: d.By.String(), Others: d.Others, Ended: d.Ended.String(),
			Candidates: candidatesOf(d.Candidates), Chosen: d.Candidates[d.Chosen].Key,
		}
		if d.Ended >= balance.Succeeded {
			ms := milliseconds(d.Took)
			to.Decisions[i].Took = &ms
		}
	}
	return to
}

func candidatesOf(all []balance.Candidate) []Candidate {
	to := make([]Candidate, len(all))
	for i, c := range all {
		to[i] = Candidate{Endpoint: c.Key, Cost: costOf(c.Cost), Held: c.Held, Answer: c.Answer.String()}
		if c.Latency > 0 {
			ms := milliseconds(c.Latency)
			to[i].Latency = &ms
		}
	}
	return to
}
