package lab

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// A Published figure is what somebody else measured or computed, which the lab has to agree with before its own figures mean
// anything.
type Published struct {
	Scenario, Policy, Figure string
	Value                    float64
	// The lab's figure may be off by Share of the value, or by Absolute, whichever is more.
	Share, Absolute float64
	// Source is where it is from.
	Source string
}

const (
	finagle    = "Finagle's simulator, simulated again"
	tower      = "tower's pull request 76, simulated again"
	closedForm = "closed form"
	prototype  = "an independent simulation"
)

// oftenEqual is what a hundred trials cannot tell: of a maximum of 7 and one of 8, each is about as frequent in 2^16 bins at random.
func oftenEqual(policy, bins string) float64 {
	if policy == "random" && bins == "2^16" {
		return 0.5
	}
	return 0
}

// Agrees reports whether v is the published value, within what is allowed.
func (p Published) Agrees(v float64) bool {
	return math.Abs(v-p.Value) <= max(p.Share*p.Value, p.Absolute)
}

// inOrder goes over m, the short names first, so that a page is the same each time.
func inOrder[V any](m map[string]V) iter.Seq2[string, V] {
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return func(yield func(string, V) bool) {
		for _, name := range names {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}

// PublishedFigures are compared with means over five seeds.
func PublishedFigures() []Published {
	var all []Published
	add := func(source, scenario, policy string, share, absolute float64, figures ...Figure) {
		for _, f := range figures {
			all = append(all, Published{scenario, policy, f.Name, f.Value, share, absolute, source})
		}
	}
	for policy, q := range inOrder(map[string]map[string][2]float64{ // mean and most frequent of a hundred trials
		"random":      {"2^8": {4.76, 5}, "2^12": {6.17, 6}, "2^16": {7.65, 8}},
		"in-flight":   {"2^8": {2.91, 3}, "2^12": {3.01, 3}, "2^16": {3.32, 3}},
		"in-flight-3": {"2^8": {2.09, 2}, "2^12": {2.86, 3}, "2^16": {3, 3}},
		"in-flight-4": {"2^8": {2, 2}, "2^12": {2.08, 2}, "2^16": {2.69, 3}},
	}) {
		for bins, v := range inOrder(q) {
			add(prototype, "balls", policy, 0, 0.15, Figure{bins + ".mean", v[0]})
			add(prototype, "balls", policy, 0, 0.5+oftenEqual(policy, bins), Figure{bins + ".most_frequent", v[1]})
		}
	}
	add(finagle, "slow-middle", "random", 0, 0.0015, Figure{"within_1s", 0.9543}) // chance alone moves a mean of five by 0.0004
	for policy, within := range inOrder(map[string]float64{
		"round-robin": 0.9545, "in-flight": 0.9941, "in-flight-replacement": 0.9936, "full-scan": 0.9947, "peak-ewma": 0.99907,
	}) {
		add(finagle, "slow-middle", policy, 0, 0.0005, Figure{"within_1s", within})
	}
	for policy, stuck := range inOrder(map[string]float64{"round-robin": 2668, "peak-ewma": 344}) {
		add(finagle, "hang", policy, Slack, 0, Figure{"stuck", stuck})
	}
	add(finagle, "hang", "in-flight", 0, 2, Figure{"stuck", 22.6})
	for policy, q := range inOrder(map[string][6]float64{
		"round-robin": {73.2, 10, 98, 505, 899, 990},
		"in-flight":   {18.8, 6, 58, 81, 99, 873},
		"peak-ewma":   {15.3, 5, 56, 78, 96, 100},
	}) {
		add(tower, "tower-76", policy, 0.05, 0, Figure{"50.seconds", q[0]})
		add(tower, "tower-76", policy, 0.05, 2, Figure{"50.p50", q[1]}, Figure{"50.p90", q[2]}, Figure{"50.p95", q[3]}, Figure{"50.p99", q[4]})
		add(tower, "tower-76", policy, 0.10, 2, Figure{"50.p999", q[5]})
	}
	for policy, share := range inOrder(map[string]float64{"round-robin": 0.1, "full-scan": 0.66, "in-flight": 0.199, "peak-ewma": 0.2}) {
		add(prototype, "fast-fail", policy, Slack, 0, Figure{"failed", share})
	}
	add(prototype, "fast-fail", "peak-ewma-penalty", 0, 0.0001, Figure{"failed", 0.0001})
	for _, l := range []struct {
		name string
		load float64
	}{{"0.5", 0.5}, {"0.7", 0.7}, {"0.9", 0.9}, {"0.95", 0.95}} {
		add(closedForm, "supermarket", "p2c-oracle", 0.04, 0, Figure{l.name + ".mean", supermarketMean(l.load, 2)})
		add(closedForm, "supermarket", "random", 0.04, 0, Figure{l.name + ".mean", supermarketMean(l.load, 1)})
	}
	// These were published from one run, and long queues remember: at random a single run is off by 4 %.
	for policy, means := range inOrder(map[string][3]float64{"random": {9.9, 9.8, 9.7}, "round-robin": {5.3, 5.8, 6.9}}) {
		add(prototype, "fleet-equal", policy, 0.05, 0, Figure{"1.mean", means[0]}, Figure{"10.mean", means[1]}, Figure{"100.mean", means[2]})
	}
	for policy, means := range inOrder(map[string][3]float64{
		"in-flight":    {2.67, 4.19, 7.07},
		"peak-ewma/1s": {3.14, 5.77, 9.46}, "p2c-oracle": {2.67, 2.64, 2.65}, "jsq-oracle": {1.06, 1.07, 1.07},
	}) {
		add(prototype, "fleet-equal", policy, Slack, 0, Figure{"1.mean", means[0]}, Figure{"10.mean", means[1]}, Figure{"100.mean", means[2]})
	}
	for policy, means := range inOrder(map[string][2]float64{
		"in-flight": {10.3, 5.48}, "peak-ewma": {7.17, 3.57}, "p2c-oracle": {4.68, 2.36},
	}) {
		add(prototype, "fleet-half", policy, Slack, 0, Figure{"mean", means[0]})
		add(prototype, "fleet-tenth", policy, Slack, 0, Figure{"mean", means[1]})
	}
	return sorted(all)
}

// sorted puts them into the order of the scenarios and policies.
func sorted(all []Published) []Published {
	var in []Published
	for _, s := range Scenarios() {
		for _, policy := range append(s.Policies, sim.Default) {
			for _, p := range all {
				if p.Scenario == s.Name && p.Policy == policy {
					in = append(in, p)
				}
			}
		}
	}
	return in
}
