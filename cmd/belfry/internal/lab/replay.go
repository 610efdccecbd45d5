package lab

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/admin"
	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// A Recording is what a proxy has decided: the answer of its /api/decisions.
//
// To replay it, its requests come when they came, and each endpoint answers with one of the answers that it gave, drawn at random. So what an
// endpoint would have done with more or fewer requests is not known to a replay, nor that it was slow at one time and quick at another; nor are
// limits, weights, zones and keys; and every policy begins without what the proxy knew by then.
type Recording struct {
	name      string
	over      time.Duration
	arrivals  []int64 // in µs since the first
	chosen    []int   // the endpoint that each went to
	endpoints []answerer
	index     map[string]int // of endpoints, by key
	outcome   sharing
}

// An answerer is an endpoint of a recording.
type answerer struct {
	key       string
	chosen    int
	good, bad []float64 // how long its answers took, in µs
	expected  []float64 // and what was expected of it
}

// The most that a recording may be: as much as a proxy keeps.
const (
	maxRecording = 256 << 20
	maxRecorded  = 1000
)

// LoadRecording returns what the file at path has recorded.
func LoadRecording(path string) (Recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return Recording{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxRecording+1))
	if err != nil {
		return Recording{}, err
	}
	if len(data) > maxRecording {
		return Recording{}, fmt.Errorf("%s: must be no longer than 256 MiB", path)
	}
	return ParseRecording(path, data)
}

// ParseRecording returns what data has recorded, which is the content of the file called name.
func ParseRecording(name string, data []byte) (Recording, error) {
	var d admin.Decisions
	if err := json.Unmarshal(data, &d); err != nil {
		return Recording{}, fmt.Errorf("%s: must be what /api/decisions answers: %w", name, err)
	}
	r := Recording{name: name, index: map[string]int{}}
	slices.SortStableFunc(d.Decisions, func(a, b admin.Decision) int { return a.At.Compare(b.At) })
	for _, one := range d.Decisions {
		if one.Ended != "returned" { // nothing was sent
			r.add(one, d.Decisions[0].At)
		}
	}
	switch {
	case len(r.arrivals) == 0:
		return Recording{}, fmt.Errorf("%s: must have decisions, and has none; decisions: N in the proxy's file has it keep some", name)
	case len(r.endpoints) > maxRecorded:
		return Recording{}, fmt.Errorf("%s: must be of at most %d endpoints, got %d", name, maxRecorded, len(r.endpoints))
	case !slices.ContainsFunc(r.endpoints, func(e answerer) bool { return len(e.good) > 0 }):
		return Recording{}, fmt.Errorf("%s: must have a decision that ended with a success, and has none", name)
	}
	r.over = time.Duration(r.arrivals[len(r.arrivals)-1]) * time.Microsecond
	r.outcome = r.sharing()
	return r, nil
}

func (r *Recording) add(one admin.Decision, first time.Time) {
	for _, c := range one.Candidates {
		e := r.endpoint(c.Endpoint)
		if credible(c.Latency) {
			r.endpoints[e].expected = append(r.endpoints[e].expected, *c.Latency*ms)
		}
	}
	i := r.endpoint(one.Chosen)
	e := &r.endpoints[i]
	e.chosen++
	r.arrivals = append(r.arrivals, one.At.Sub(first).Microseconds())
	r.chosen = append(r.chosen, i)
	if !credible(one.Took) {
		return
	}
	switch one.Ended {
	case "success":
		e.good = append(e.good, *one.Took*ms)
	case "failure":
		e.bad = append(e.bad, *one.Took*ms)
	}
}

// credible reports whether anything takes so many ms: 11 days are too long.
func credible(took *float64) bool { return took != nil && *took >= 0 && *took < 1e9 }

// endpoint returns the index of the endpoint with this key.
func (r *Recording) endpoint(key string) int {
	if i, ok := r.index[key]; ok {
		return i
	}
	r.index[key] = len(r.endpoints)
	r.endpoints = append(r.endpoints, answerer{key: key})
	return len(r.endpoints) - 1
}

// sharing is what was recorded, as if it were a policy's.
func (r *Recording) sharing() sharing {
	s := sharing{same: 1, shares: make([]float64, len(r.endpoints))}
	var good sim.Latencies
	bad := 0
	for i, e := range r.endpoints {
		s.shares[i] = float64(e.chosen) / float64(len(r.arrivals))
		bad += len(e.bad)
		for _, took := range e.good {
			good = append(good, int64(took))
		}
	}
	slices.Sort(good)
	s.failed = float64(bad) / float64(bad+len(good))
	s.mean, s.p99 = good.Mean()/ms, good.At(0.99)/ms
	return s
}

// server returns what answers as e did. One without a success of its own takes what was expected of it, or else what all took.
func (r *Recording) server(e answerer) sim.Server {
	took := e.good
	if len(took) == 0 {
		took = e.expected
	}
	if len(took) == 0 {
		for _, other := range r.endpoints {
			took = append(took, other.good...)
		}
	}
	s := sim.Server{Latency: sim.Samples(took)}
	if n := len(e.bad); n > 0 {
		w := sim.Window{Span: sim.Span{From: 0, Until: sim.Never}, Fails: float64(n) / float64(n+len(e.good))}
		w.FailsIn = slices.Sorted(slices.Values(e.bad))[n/2]
		s.Windows = []sim.Window{w}
	}
	return s
}

// A sharing is how a policy shares the requests of a recording. Latencies are in ms.
type sharing struct {
	same      float64 // of the requests that go where they went
	failed    float64
	mean, p99 float64
	shares    []float64 // of each endpoint
}

func (s *sharing) add(o sharing, part float64) {
	s.same += o.same * part
	s.failed += o.failed * part
	s.mean += o.mean * part
	s.p99 += o.p99 * part
	for i, share := range o.shares {
		s.shares[i] += share * part
	}
}

// ReplayPolicies are those that a recording is replayed under unless others are asked for.
var ReplayPolicies = []string{"random", "round-robin", "in-flight", "peak-ewma", sim.Default}

// A Replay is what to do with a recording.
type Replay struct {
	Recording Recording
	Policies  []string // nil: [ReplayPolicies]
	Seed      uint64
	Seeds     int
}

// Validate says which policy is not known.
func (p Replay) Validate() error {
	for _, name := range p.Policies {
		if _, err := sim.Find(name); err != nil {
			return err
		}
	}
	return nil
}

func (p Replay) run(policy sim.Policy) sharing {
	seeds := max(p.Seeds, 1)
	mean := sharing{shares: make([]float64, len(p.Recording.endpoints))}
	for i := range seeds {
		mean.add(p.Recording.under(policy, p.Seed+uint64(i)), 1/float64(seeds))
	}
	return mean
}

// under returns how policy would have shared the requests.
func (r *Recording) under(policy sim.Policy, seed uint64) sharing {
	cfg := sim.Config{Arrivals: r.arrivals, Policy: policy, Seed: seed}
	for _, e := range r.endpoints {
		cfg.Servers = append(cfg.Servers, r.server(e))
	}
	all := sim.Run(cfg)
	s := sharing{shares: make([]float64, len(r.endpoints))}
	part := 1 / float64(len(all))
	for i, one := range all {
		if one.Server < 0 {
			continue
		}
		s.shares[one.Server] += part
		if int(one.Server) == r.chosen[i] {
			s.same += part
		}
	}
	good := sim.LatenciesOf(all, sim.Request.Good)
	s.failed = 1 - sim.Share(all, nil, sim.Request.Good)
	s.mean, s.p99 = good.Mean()/ms, good.At(0.99)/ms
	return s
}

// columns is how many endpoints have a column of their own: those that got the most.
const columns = 8

// WriteReplay replays, and writes how each policy would have chosen for people to read. The plan is valid.
func WriteReplay(w io.Writer, p Replay) error {
	r := &p.Recording
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s over %v among %s\n%s\n\n", r.name, counted(len(r.arrivals), "decision"), r.over.Round(time.Millisecond), counted(len(r.endpoints), "endpoint"), p.settings())
	order := r.busiest()
	g := grid{headers: []string{"policy", "same", "failed", "mean", "p99"}}
	for i := range order {
		g.headers = append(g.headers, fmt.Sprintf("#%d", i+1))
	}
	if len(r.endpoints) > len(order) {
		g.headers = append(g.headers, "others")
	}
	g.rows = append(g.rows, r.outcome.cells("recorded", order))
	names := p.Policies
	if names == nil {
		names = ReplayPolicies
	}
	for _, name := range names {
		policy, err := sim.Find(name)
		if err != nil {
			return err
		}
		g.rows = append(g.rows, p.run(policy).cells(name, order))
	}
	b.WriteString(draw(g))
	b.WriteByte('\n')
	for i, at := range order {
		fmt.Fprintf(&b, "#%d %s\n", i+1, r.endpoints[at])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// counted is n of what, which is one.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (p Replay) settings() string {
	return settings(Plan{Scenario: Scenario{Unit: "ms"}, Seed: p.Seed, Seeds: p.Seeds})
}

// busiest returns the endpoints that have a column, those with the largest share first.
func (r *Recording) busiest() []int {
	var all []int
	for i := range r.endpoints {
		all = append(all, i)
	}
	slices.SortStableFunc(all, func(a, b int) int { return r.endpoints[b].chosen - r.endpoints[a].chosen })
	return all[:min(len(all), columns)]
}

func (s sharing) cells(name string, order []int) []string {
	row := []string{name, percent(s.same), percent(s.failed), number(s.mean), number(s.p99)}
	others := 1.0
	for _, i := range order {
		row = append(row, percent(s.shares[i]))
		others -= s.shares[i]
	}
	if len(s.shares) > len(order) {
		row = append(row, percent(math.Abs(others)))
	}
	return row
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// String says what is known of e.
func (e answerer) String() string {
	n := len(e.good) + len(e.bad)
	switch {
	case n > 0 && len(e.good) > 0:
		median := slices.Sorted(slices.Values(e.good))[len(e.good)/2]
		return fmt.Sprintf("%s: %s, %s of them failures, median %s ms", e.key, counted(n, "answer"), percent(float64(len(e.bad))/float64(n)), number(median/ms))
	case n > 0:
		return fmt.Sprintf("%s: %s, all of them failures", e.key, counted(n, "answer"))
	case len(e.expected) > 0:
		return e.key + ": no answer of its own; it takes what was expected of it"
	}
	return e.key + ": no answer of its own; it takes what all of them took"
}
