package admin

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
	"github.com/belfry-go/belfry/cmd/belfry/internal/version"
	"github.com/belfry-go/belfry/eject"
)

var versionString = version.String()

// snapshot puts together what was observed, and what the meter says.
func (a *Admin) snapshot(o observation) Snapshot {
	lately, st := a.meter.lately(), o.state
	s := Snapshot{
		Time:          o.at.UTC().Truncate(time.Millisecond),
		Version:       strings.TrimPrefix(versionString, "belfry "),
		Address:       st.Address,
		UptimeSeconds: max(o.at.Sub(st.Started), 0).Round(time.Millisecond).Seconds(),
		WindowSeconds: (window * tick).Seconds(),
		Draining:      st.Draining,
		Zone:          st.Zone,
		Config:        configOf(st.Config),
		Stack:         layersOf(st.Stack),
		Requests:      requestsOf(st.Requests, o.outcomes, lately.point),
		Reasons:       reasonsOf(st.Requests.Reasons),
		Shed:          st.Shed,
		Refusals:      st.Refusals,
		Buffer: Buffer{
			Bound: st.Buffer.Bound, Seated: st.Buffer.Seated, Queued: st.Buffer.Queued, Admitted: st.Buffer.Admitted,
			Rejected: st.Buffer.Rejected, Cancelled: st.Buffer.Cancelled, Expired: st.Buffer.Expired, Failed: st.Buffer.Failed,
		},
		Limit:   Limit{Limit: st.Limit.Limit, InFlight: st.Limit.InFlight, Reserved: st.Limit.Reserved, Waiting: st.Limit.Waiting},
		Timeout: Timeout{Calls: st.Timeout.Calls, Waits: st.Timeout.Waits},
		Retry: Retry{
			Retries: st.Retry.Retries, Rate: lately.retries,
			OutOfAttempts: st.Retry.OutOfAttempts, OutOfBudget: st.Retry.OutOfBudget, OutOfTime: st.Retry.OutOfTime,
			NotCopyable: st.Retry.NotCopyable, Unready: st.Retry.Unready, Budget: st.Budget.Balance,
		},
		Hedge: Hedge{
			Hedges: st.Hedge.Hedges, Won: st.Hedge.Won, NotAllowed: st.Hedge.NotAllowed,
			OutOfBudget: st.Hedge.OutOfBudget, NotReady: st.Hedge.NotReady, DelaySeconds: st.Hedge.Delay.Seconds(),
		},
		Discovery: Discovery{Waiting: st.Waiting, Error: text(st.Discovery)},
		Endpoints: make([]Endpoint, len(st.Endpoints)),
		Guard:     guardOf(st),
	}
	for i, id := range identify(st.Endpoints) {
		s.Endpoints[i] = endpointOf(st.Endpoints[i], lately, id)
	}
	// They appear in no particular order, and a row must not move because the proxy was started again.
	slices.SortStableFunc(s.Endpoints, func(a, b Endpoint) int { return strings.Compare(a.Key, b.Key) })
	s.Status, s.Problems = judge(s)
	return s
}

func configOf(c proxy.ConfigState) Config {
	all := Config{File: c.File, Generation: c.Generation, Since: c.Since.UTC(), Refused: text(c.Refused)}
	if c.Refused != nil {
		at := c.RefusedAt.UTC()
		all.RefusedAt = &at
	}
	return all
}

// layersOf takes a stack's text apart.
func layersOf(stack string) []Layer {
	all := []Layer{}
	for part := range strings.SplitSeq(stack, " → ") {
		if part == "" {
			continue
		}
		name, settings, _ := strings.Cut(part, "(")
		all = append(all, Layer{Name: name, Settings: strings.TrimSuffix(settings, ")")})
	}
	return all
}

func requestsOf(r proxy.RequestStats, t tally, p Point) Requests {
	all := Requests{
		Total: r.Total, InFlight: r.InFlight, FailedTotal: t.failed(), Outcomes: make(map[string]uint64, outcomes),
		Rate: p.Rate, Rejected: p.Rejected, Failed: p.Failed, P50: p.P50, P99: p.P99,
	}
	for o := range outcomes {
		all.Outcomes[o.String()] = t[o]
	}
	return all
}

// reasonsOf puts the most frequent first.
func reasonsOf(counts map[string]uint64) []Reason {
	all := make([]Reason, 0, len(counts))
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, Reason{reason, counts[reason]})
	}
	slices.SortStableFunc(all, func(a, b Reason) int {
		switch {
		case a.Count > b.Count:
			return -1
		case a.Count < b.Count:
			return 1
		}
		return 0
	})
	return all
}

func endpointOf(e proxy.EndpointState, lately recent, id endpointID) Endpoint {
	r := lately.endpoints[id]
	all := Endpoint{
		Key: e.Key, Addr: e.Addr, State: e.State.String(), Condition: conditionOf(e, r.failing),
		Weight: max(e.Weight, 1), Zone: e.Zone, Priority: e.Priority, Cost: costOf(e.Cost),
		Rate: r.rate, Failed: r.failed, InFlight: e.InFlight, Reserved: e.Reserved, Limit: e.Limit.Limit,
		Successes: e.Successes, Failures: e.Failures, Ignored: e.Ignored,
		NotReady: text(e.Err), LastError: text(e.Failure),
	}
	all.ejectedOf(e)
	if lately.sent {
		all.Share = &r.share
	}
	if e.Latency > 0 {
		ms := milliseconds(e.Latency)
		all.Latency = &ms
	}
	if e.SlowStart > 1 {
		all.SlowStart = &e.SlowStart
	}
	if h := e.Health; h != nil {
		all.Health = &Health{Healthy: h.Healthy, Since: h.Since.UTC(), LastError: text(h.LastError), Probes: h.Probes, Failures: h.Failures, Changes: h.Changes}
	}
	if b := e.Breaker; b != nil {
		all.Breaker = &Breaker{
			State: b.State.String(), Since: b.Since.UTC(), LastError: text(b.LastError),
			Failures: b.Failures, Opened: b.Opened, Probes: b.Probes, Refused: b.Refused,
		}
		if !b.NextProbe.IsZero() {
			next := b.NextProbe.UTC()
			all.Breaker.NextProbe = &next
		}
	}
	return all
}

func guardOf(s proxy.State) Guard {
	g := Guard{
		Endpoints: s.Guard.Endpoints, Out: s.Guard.Out, Allowed: s.Guard.Allowed, Ejected: map[string]uint64{}, Refused: map[string]uint64{},
		PanicReady: s.Panics.Ready, PanicProbing: s.Panics.Probing, PanicFailed: s.Panics.Failed,
	}
	for why := range eject.Whys {
		g.Ejected[why.String()], g.Refused[why.String()] = s.Guard.Ejected[why], s.Guard.Refused[why]
	}
	return g
}

// ejectedOf adds why e is left alone, and how it does among its peers.
func (all *Endpoint) ejectedOf(e proxy.EndpointState) {
	for _, why := range e.Ejected {
		all.Ejected = append(all.Ejected, why.String())
	}
	if len(e.Ejected) > 0 {
		all.EjectedSeconds = e.Until.Round(time.Millisecond).Seconds()
	}
	if o := e.Outlier; o != nil {
		all.Outlier = &Outlier{
			o.Calls, o.Success, o.MedianSuccess, milliseconds(o.Latency), milliseconds(o.MedianLatency), o.Peers, o.Ejections, o.Spared,
		}
	}
}

// costOf returns what JSON can say of a cost, which has no infinity.
func costOf(cost float64) *float64 {
	if cost == 0 || math.IsInf(cost, 0) || math.IsNaN(cost) {
		return nil
	}
	return &cost
}

// maxText is how long an error's text may be: it goes to every reader once a second.
const maxText = 300

func text(err error) string {
	if err == nil {
		return ""
	}
	s := strings.ToValidUTF8(err.Error(), "�")
	if runes := []rune(s); len(runes) > maxText {
		return string(runes[:maxText-1]) + "…"
	}
	return s
}

// encode returns v as JSON that may stand in HTML: <, > and & are escaped.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a NaN, or a type above that JSON does not know
	}
	return b
}
