package explain

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/admin"
)

// A record is how an endpoint did in the latest decisions.
type record struct {
	all              int
	over             time.Duration // from the first to the last
	drawn, chosen    int
	refused, outbid  int
	keyed            int // of all
	suggested, own   int // of all: by what probes say, and how many of those were it
	finished, failed int
	dearer           []float64            // how many times what the chosen one cost it did
	took             map[string][]float64 // of each endpoint's successes, in ms
}

func recordOf(d admin.Decisions, key string) record {
	r := record{all: len(d.Decisions), took: map[string][]float64{}}
	if r.all > 0 {
		r.over = d.Decisions[r.all-1].At.Sub(d.Decisions[0].At)
	}
	for _, one := range d.Decisions {
		if one.Ended == "success" && one.Took != nil {
			r.took[one.Chosen] = append(r.took[one.Chosen], *one.Took)
		}
		switch one.By {
		case "key":
			r.keyed++
		case "metric":
			r.suggested++
			if one.Chosen == key {
				r.own++
			}
		}
		if one.Chosen == key {
			r.chose(one)
		}
		r.candidates(one, key)
	}
	return r
}

func (r *record) chose(one admin.Decision) {
	r.chosen++
	switch one.Ended {
	case "failure":
		r.failed++
		r.finished++
	case "success":
		r.finished++
	}
}

func (r *record) candidates(one admin.Decision, key string) {
	var own, winner *admin.Candidate
	for i := range one.Candidates {
		c := &one.Candidates[i]
		if c.Endpoint == key {
			own = c
		}
		if c.Answer == "granted" {
			winner = c
		}
	}
	if own == nil {
		return
	}
	r.drawn++
	switch {
	case own.Answer == "refused":
		r.refused++
	case own.Answer == "not asked":
		r.outbid++
		if winner != nil && own.Cost != nil && winner.Cost != nil && *winner.Cost > 0 {
			r.dearer = append(r.dearer, *own.Cost / *winner.Cost)
		}
	}
}

// decided says how the endpoint did.
func (v *view) decided() string {
	r := v.record
	switch {
	case !v.kept:
		return "The proxy keeps no decisions. With decisions: 1000 in its file this says how often it was drawn, and why another was taken."
	case r.all == 0:
		return "There are no decisions yet."
	}
	text := fmt.Sprintf("Of the latest %s, over %s, it was drawn or asked in %d, and chosen in %d.", plural(r.all, "decision", "decisions"), seconds(r.over.Seconds()), r.drawn, r.chosen)
	if r.outbid > 0 {
		text += fmt.Sprintf(" %s another came first", plural(r.outbid, "time", "times"))
		if r.dearer != nil {
			text += fmt.Sprintf(": its cost was then %s times that of the other, in the median", times(median(r.dearer)))
		}
		text += "."
	}
	if r.refused > 0 {
		text += fmt.Sprintf(" %s it had no room.", plural(r.refused, "time", "times"))
	}
	return text
}
