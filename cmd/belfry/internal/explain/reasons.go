package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/admin"
)

func (v *view) gone() string {
	switch v.e.Condition {
	case admin.Removed:
		return fmt.Sprintf("It was removed, and only finishes what it has: %d in flight.", v.e.InFlight)
	case admin.Closed:
		return "It is closed for good" + because(v.e.NotReady)
	default:
		return ""
	}
}

func (v *view) unhealthy() string {
	h := v.e.Health
	if h == nil || h.Healthy {
		return ""
	}
	what := "it is not asked until they succeed"
	if v.e.Condition == admin.Unhealthy && !slices.Contains(v.e.Ejected, "health") {
		what = "it is asked all the same, for as many endpoints as may be are left alone already"
	}
	return fmt.Sprintf("It is unhealthy: its probes fail, for %s now, and %s%s", v.since(h.Since), what, because(h.LastError))
}

func (v *view) tripped() string {
	b := v.e.Breaker
	if b == nil || b.State == "closed" {
		return ""
	}
	next := "one request tries it now"
	if b.NextProbe != nil && b.NextProbe.After(v.Time) {
		next = "in " + seconds(b.NextProbe.Sub(v.Time).Seconds()) + " one request tries it"
	}
	return fmt.Sprintf("Its breaker has tripped: it is %s, for %s now, and %s%s", b.State, v.since(b.Since), next, because(b.LastError))
}

// ejected is about what has no sentence of its own.
func (v *view) ejected() string {
	var why []string
	for _, reason := range v.e.Ejected {
		switch reason {
		case "outlier":
			why = append(why, "it does worse than its peers"+v.worse())
		case "overload":
			why = append(why, "it has asked for it, by Retry-After")
		}
	}
	if why == nil {
		return ""
	}
	until := v.Time.Add(time.Duration(v.e.EjectedSeconds * float64(time.Second))).UTC()
	return fmt.Sprintf("It is ejected until %s UTC, for %s more, because %s.", until.Format(time.TimeOnly), seconds(v.e.EjectedSeconds), strings.Join(why, ", and because "))
}

func (v *view) worse() string {
	o := v.e.Outlier
	switch {
	case o == nil || o.Calls == 0:
		return ""
	case o.MedianLatency > 0 && o.Latency > 1.5*o.MedianLatency:
		return fmt.Sprintf(" (%s, where the median is %s)", milliseconds(o.Latency), milliseconds(o.MedianLatency))
	}
	return fmt.Sprintf(" (%s good answers, where the median is %s)", percent(o.Success), percent(o.MedianSuccess))
}

func (v *view) unreached() string {
	switch v.e.Condition {
	case admin.BackingOff:
		return "It could not be reached, or refused, and is left alone between one try and the next" + because(v.e.NotReady)
	case admin.Dialling:
		return "It is new, and was not reached yet" + because(v.e.NotReady)
	default:
		return ""
	}
}

func (v *view) outranked() string {
	n, best := 0, v.e.Priority
	for _, o := range v.others {
		if o.Priority < v.e.Priority && useful(o) {
			n++
			best = min(best, o.Priority)
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("Its priority is %d, and %s of lower number, from %d on, can be used: these come first.", v.e.Priority, plural(n, "endpoint", "endpoints"), best)
}

func (v *view) elsewhere() string {
	near := func(o admin.Endpoint) bool { return o.Zone == v.Zone && o.Priority <= v.e.Priority && useful(o) }
	if v.Zone == "" || v.e.Zone == v.Zone || !slices.ContainsFunc(v.others, near) {
		return ""
	}
	where := "in no zone that is known"
	if v.e.Zone != "" {
		where = "in zone " + v.e.Zone
	}
	return fmt.Sprintf("It is %s, and the proxy in %s: endpoints there are preferred while they have room and are not slow.", where, v.Zone)
}

// Below these an endpoint is like the others: chance alone makes as much of a difference.
const (
	fewFailures  = 0.02
	muchSlower   = 1.25
	smallSample  = 5
	slowToBegin  = 1.05
	perEndpoint  = 10
	muchInFlight = 2
	mostly       = 0.5
)

func (v *view) failing() string {
	share, of := 0.0, ""
	switch {
	case v.record.finished >= smallSample:
		share, of = float64(v.record.failed)/float64(v.record.finished), "in the latest decisions"
	case v.e.Rate > 0:
		share, of = v.e.Failed/v.e.Rate, "in the last "+seconds(v.WindowSeconds)
	}
	if share < fewFailures && v.e.Condition != admin.Failing {
		return ""
	}
	if share == 0 {
		return "It is failing: most of the latest attempts there failed, and that makes it cost more" + because(v.e.LastError)
	}
	return fmt.Sprintf("It is failing: %s of its attempts did %s, and that makes it cost more%s", percent(share), of, because(v.e.LastError))
}

func (v *view) slow() string {
	own, ok := v.latency(v.e)
	var all []float64
	for _, o := range v.others {
		if l, ok := v.latency(o); ok {
			all = append(all, l)
		}
	}
	if !ok || all == nil {
		return ""
	}
	usual := median(all)
	if own < muchSlower*usual {
		return ""
	}
	return fmt.Sprintf("It is slow: an answer is expected to take %s there, %s times the median of the others, %s.", milliseconds(own), times(own/usual), milliseconds(usual))
}

// latency is what an answer of o takes: what the metric expects, or else the median of the latest decisions.
func (v *view) latency(o admin.Endpoint) (ms float64, ok bool) {
	if o.Latency != nil {
		return *o.Latency, true
	}
	took := v.record.took[o.Key]
	return median(took), len(took) >= smallSample
}

func (v *view) full() string {
	refused := ""
	if r := v.record; r.refused > 0 {
		refused = fmt.Sprintf(" It refused %s of the %s that it was asked in the latest decisions.", times(float64(r.refused)), plural(r.refused+r.chosen, "time", "times"))
	}
	if taken := v.e.InFlight + v.e.Reserved; v.e.Limit > 0 && taken >= v.e.Limit {
		return fmt.Sprintf("It is not ready: %d of its %d places are taken.%s", taken, v.e.Limit, refused)
	}
	switch {
	case v.e.Condition == admin.NotReady:
		return "It is not ready: it had no room when it was last asked." + refused
	case refused != "":
		return "It has room now, and had none before." + refused
	}
	return ""
}

func (v *view) busy() string {
	var all []float64
	for _, o := range v.others {
		all = append(all, float64(o.InFlight))
	}
	usual := median(all)
	if all == nil || float64(v.e.InFlight) < muchInFlight*usual+muchInFlight {
		return ""
	}
	return fmt.Sprintf("It is busy: it has %d in flight, and the median of the others is %s.", v.e.InFlight, times(usual))
}

func (v *view) fresh() string {
	if s := v.e.SlowStart; s != nil && *s > slowToBegin {
		return fmt.Sprintf("It is in its slow start, because it is new or has come back: for now that makes it cost %s times as much.", times(*s))
	}
	return ""
}

// keyed is about requests whose key says where they go.
func (v *view) keyed() string {
	r := v.record
	by, got := float64(r.keyed)/float64(max(r.all, 1)), float64(r.chosen)/float64(max(r.all, 1))
	if r.all < perEndpoint*(len(v.others)+1) || by < mostly || got > mostly*float64(v.e.Weight)/float64(max(v.weight, 1)) {
		return ""
	}
	return fmt.Sprintf("Few requests have a key that is its own: %s of the latest decisions were for requests that go where their key belongs.", percent(by))
}

// passedOver is about requests that go to whom probes say is best.
func (v *view) passedOver() string {
	r := v.record
	by, own := float64(r.suggested)/float64(max(r.all, 1)), float64(r.own)/float64(max(r.suggested, 1))
	if r.all < perEndpoint*(len(v.others)+1) || by < mostly || own > mostly/float64(len(v.others)+1) {
		return ""
	}
	return fmt.Sprintf("Probes show others that are better: %s of the latest decisions went by probes, and %s of those to it.", percent(by), percent(own))
}

func (v *view) light() string {
	most := v.e.Weight
	for _, o := range v.others {
		most = max(most, o.Weight)
	}
	if most == v.e.Weight {
		return ""
	}
	return fmt.Sprintf("Its weight is %d of %d, and others have up to %d.", v.e.Weight, v.weight, most)
}

func (v *view) rare() string {
	n := v.Requests.Rate * v.WindowSeconds
	if n >= float64(perEndpoint*(len(v.others)+1)) {
		return ""
	}
	return fmt.Sprintf("There are few requests in all: %.0f in the last %s, for %s. Of so few chance may give it none.", n, seconds(v.WindowSeconds), plural(len(v.others)+1, "endpoint", "endpoints"))
}

func useful(o admin.Endpoint) bool {
	return o.Condition == admin.Ready || o.Condition == admin.NotReady || o.Condition == admin.Failing
}
