package demo

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab"
)

// each is how long each policy runs when the table of docs/demo.md is made:
//
//	go test ./internal/demo -run TestRealTimeAgreesWithTheLab -v -args -each=5s
var each = flag.Duration("each", 0, "print a table of real time and the lab, with so long for each policy of each scenario")

// A comparison is a scenario as it is run here: for as short as it can be and still show what it is about.
type comparison struct {
	scenario string
	run      time.Duration
	rate     int
	// clear is how many times more the odd servers must get in the lab from one policy than from another for the difference not to be
	// one of chance among so few requests.
	clear float64
}

var comparisons = []comparison{
	{"spread", 800 * time.Millisecond, 500, 1.9},
	{"slow", 1200 * time.Millisecond, 1000, 2},
	{"hang", 800 * time.Millisecond, 500, 3},
	{"fast-fail", 800 * time.Millisecond, 500, 3},
	{"cold-start", 800 * time.Millisecond, 500, 3},
	{"one-stuck", 1200 * time.Millisecond, 200, 5},
}

// runs is how often a scenario may be run until the lab and real time agree. A machine that is busy with other work makes all
// servers slow, and then policies are alike; it cannot make them agree with the lab.
const runs = 3

// TestRealTimeAgreesWithTheLab runs all scenarios on real servers. What the lab says clearly must come out the same way: shares, which
// depend less on how busy the machine is than latencies do.
func TestRealTimeAgreesWithTheLab(t *testing.T) {
	if len(comparisons) != len(lab.DemoNames()) {
		t.Fatalf("%d of %d scenarios are compared", len(comparisons), len(lab.DemoNames()))
	}
	for _, c := range comparisons {
		t.Run(c.scenario, func(t *testing.T) {
			cfg := Config{Scenario: c.scenario, Duration: c.run, Rate: &c.rate, Seed: 1}
			if *each > 0 {
				cfg.Duration, cfg.Rate = *each, nil
			} else {
				t.Parallel()
			}
			of, err := cfg.plan()
			if err != nil {
				t.Fatal(err)
			}
			var differ []string
			for range runs {
				results := inRealTime(t, of)
				t.Logf("in real time, and in the lab\n%s", sideBySide(of, results))
				if differ = c.differ(t, results); differ == nil {
					return
				}
			}
			t.Errorf("in none of %d runs did they agree; in the last\n%s", runs, strings.Join(differ, "\n"))
		})
	}
}

// inRealTime runs all policies.
func inRealTime(t *testing.T, of plan) []PolicyResult {
	t.Helper()
	servers, err := startServers(of)
	if err != nil {
		t.Fatal(err)
	}
	defer stopServers(servers)
	pressed := newInterrupt(t.Context())
	defer pressed.abort()
	b := &board{plan: of, servers: servers}
	requests := int64(len(times(of)))
	var all []PolicyResult
	for _, p := range policies {
		res, err := runPolicy(of, p, b, pressed)
		if err != nil {
			t.Fatal(err)
		}
		if res.Requests != requests || res.Errors != 0 {
			t.Errorf("%s: %d requests, %d errors (%v), want all %d of the schedule", p.name, res.Requests, res.Errors, res.firstError, requests)
		}
		res.Lab = p.simulate(of)
		all = append(all, res)
	}
	return all
}

// differ says which pairs of policies that the lab tells apart come out the other way round.
func (c comparison) differ(t *testing.T, results []PolicyResult) (all []string) {
	t.Helper()
	told := 0
	for _, a := range results {
		for _, b := range results {
			if b.Lab.OddShare < c.clear*a.Lab.OddShare || a.Name == b.Name {
				continue
			}
			if told++; b.OddShare <= a.OddShare {
				all = append(all, fmt.Sprintf("the odd servers get %.4f under %s and %.4f under %s; in the lab %.4f and %.4f",
					a.OddShare, a.Name, b.OddShare, b.Name, a.Lab.OddShare, b.Lab.OddShare))
			}
		}
	}
	if told < 2 {
		t.Errorf("in the lab %d pairs of policies differ, too few to compare", told)
	}
	return all
}

// sideBySide is what docs/demo.md has of a scenario.
func sideBySide(of plan, results []PolicyResult) string {
	var b strings.Builder
	line := func(what string, here, there func(PolicyResult) string) {
		fmt.Fprintf(&b, "| %s | %s |", of.Name, what)
		for _, r := range results {
			fmt.Fprintf(&b, " %s (%s) |", here(r), there(r))
		}
		b.WriteByte('\n')
	}
	line("share of the "+of.OddName, func(r PolicyResult) string { return percent(r.OddShare) }, func(r PolicyResult) string { return percent(r.Lab.OddShare) })
	switch of.Judged {
	case lab.Stuck:
		line("over 500 ms", func(r PolicyResult) string { return count(r.Stuck) }, func(r PolicyResult) string { return count(r.Lab.Stuck) })
	case lab.Tail, lab.Kept: // the lines around this say it
	case lab.Failed:
		line("failed", func(r PolicyResult) string { return count(r.Figures.Failed) }, func(r PolicyResult) string { return count(r.Lab.Failed) })
	}
	line("p50", func(r PolicyResult) string { return optional(r.P50) }, func(r PolicyResult) string { return optional(&r.Lab.P50) })
	line("p99", func(r PolicyResult) string { return optional(r.P99) }, func(r PolicyResult) string { return optional(&r.Lab.P99) })
	return b.String()
}
