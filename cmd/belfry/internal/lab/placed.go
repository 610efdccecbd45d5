package lab

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
	"github.com/belfry-go/belfry/internal/pick"
	"github.com/belfry-go/belfry/load"
)

// placedScenarios are about where servers are and what they are for. Their policies are their own.
func placedScenarios() []Scenario {
	return []Scenario{weights(), lostZone(), priorities(), zoneRetries(), sizes(), keys()}
}

const (
	byWeight   = "by-weight"
	nearFirst  = "near-first"
	noZones    = "no-zones"
	nearOnly   = "near-only"
	byPriority = "by-priority"
	noneFirst  = "no-priorities"
	firstOnly  = "first-only"
	tryAnyone  = "any"
	tryOthers  = "other-endpoints"
	tryPlaces  = "other-places"
	counting   = "requests"
	costing    = "cost"
	hashed     = "bounded-hash"
	unbounded  = "hash"
	betterTwo  = "in-flight-only"
	oneZone    = 10 // servers of the fleets in zones
	zoneHeals  = 40 * second
	zoneBreaks = 20 * second
)

func weights() Scenario {
	s := Scenario{
		Name: "weights", Unit: "ms", Policies: []string{byWeight},
		About: "a million picks of idle servers that have weights: how likely picks so unlike these are, by chi-square",
	}
	for _, w := range [][]int{{98, 1, 1}, {50, 30, 20}} {
		s.Parts = append(s.Parts, Part{Name: fmt.Sprintf("%d-%d-%d", w[0], w[1], w[2]), run: func(_ sim.Policy, seed uint64) Outcome {
			counts, x := sim.Classes(w, 1_000_000, seed), 0.0
			for i, n := range counts {
				want := float64(w[i]) * 10_000
				x += (float64(n) - want) * (float64(n) - want) / want
			}
			return Outcome{Figures: []Figure{{"p", upperGamma(1, x/2)}, {"first", float64(counts[0]) / 1e6}}}
		}})
	}
	return s
}

// inZones is thirty servers in three zones, queues that take 100 ms at half of what they can, and a client in the first zone.
func inZones(policy string, seed uint64, trouble func(*sim.Site)) sim.Placed {
	p := sim.Placed{Rate: 0.5 * 10 * oneZone, Horizon: 60 * second, Metric: sim.DefaultMetric(0), Seed: seed}
	for i := range 3 * oneZone {
		s := sim.Site{Traits: pick.Traits{Zone: string(rune('a' + i/oneZone)), Host: fmt.Sprint(i)}, Latency: sim.Exponential(unit), Queue: true}
		if i < oneZone {
			trouble(&s)
		}
		p.Sites = append(p.Sites, s)
	}
	switch policy {
	case nearFirst:
		p.Zone = "a"
	case nearOnly:
		p.Sites = p.Sites[:oneZone]
	}
	return p
}

func lostZone() Scenario {
	s := Scenario{
		Name: "lost-zone", Unit: "ms", Policies: []string{nearFirst, noZones, nearOnly},
		About: "three zones of ten queues; that of the client refuses everything, fails everything, or is four times as slow for the middle third of a minute, also where servers are no queues",
	}
	broken := []sim.Span{{From: zoneBreaks, Until: zoneHeals}}
	for _, c := range []struct {
		name    string
		trouble func(*sim.Site)
		free    bool
	}{
		{"refuses", func(s *sim.Site) { s.Refuses = broken }, false},
		{"fails", func(s *sim.Site) { s.Fails = broken }, false},
		{"slow", func(s *sim.Site) { s.Slow = sim.Window{Span: broken[0], Slow: 4} }, false},
		{"slow-no-queues", func(s *sim.Site) { s.Slow = sim.Window{Span: broken[0], Slow: 4} }, true},
	} {
		s.Parts = append(s.Parts, Part{Name: c.name, run: func(p sim.Policy, seed uint64) Outcome {
			w := inZones(p.Name, seed, c.trouble)
			for i := range w.Sites {
				w.Sites[i].Queue = !c.free
			}
			all := w.Run()
			well := func(v sim.Visit) bool { return v.At >= 5*second && v.At < zoneBreaks }
			ill := func(v sim.Visit) bool { return v.At >= zoneBreaks+second && v.At < zoneHeals }
			back := func(v sim.Visit) bool { return v.At >= zoneHeals+10*second }
			near := func(v sim.Visit) bool { return v.Site >= 0 && v.Site < oneZone }
			bad := func(v sim.Visit) bool { return !v.Good }
			lat := visited(all, ill)
			return Outcome{Figures: []Figure{
				{"near_before", part(all, well, near)},
				{"near_lost", part(all, ill, near)},
				{"near_after", part(all, back, near)},
				{"failed_after_1s", part(all, ill, bad)},
				{"lost_mean", lat.Mean() / ms},
				{"lost_p99", lat.At(0.99) / ms},
			}}
		}})
	}
	return s
}

// ranked is ten queues of priority 0 that take 100 ms at 55 % of what they can, of which the first so many refuse for a third of a minute, and ten
// that stand by.
func ranked(policy string, seed uint64, lost int) sim.Placed {
	p := sim.Placed{Rate: 0.55 * 10 * oneZone, Horizon: 60 * second, Metric: sim.DefaultMetric(0), Seed: seed}
	for i := range 2 * oneZone {
		s := sim.Site{Traits: pick.Traits{Host: fmt.Sprint(i)}, Latency: sim.Exponential(unit), Queue: true}
		if i < lost {
			s.Refuses = []sim.Span{{From: zoneBreaks, Until: zoneHeals}}
		}
		if i >= oneZone && policy == byPriority {
			s.Priority = 1
		}
		p.Sites = append(p.Sites, s)
	}
	if policy == firstOnly {
		p.Sites = p.Sites[:oneZone]
	}
	return p
}

func priorities() Scenario {
	s := Scenario{
		Name: "priorities", Unit: "ms", Policies: []string{byPriority, noneFirst, firstOnly},
		About: "ten queues at 55 % load and ten that stand by; two, five or all of the former refuse everything for the middle third of a minute",
	}
	for _, lost := range []int{2, 5, 10} {
		s.Parts = append(s.Parts, Part{Name: fmt.Sprint(lost), run: func(p sim.Policy, seed uint64) Outcome {
			all := ranked(p.Name, seed, lost).Run()
			well := func(v sim.Visit) bool { return v.At < zoneBreaks }
			ill := func(v sim.Visit) bool { return v.At >= zoneBreaks+second && v.At < zoneHeals }
			back := func(v sim.Visit) bool { return v.At >= zoneHeals+10*second }
			spare := func(v sim.Visit) bool { return v.Site >= oneZone }
			lat := visited(all, ill)
			return Outcome{Figures: []Figure{
				{"spare_before", part(all, well, spare)},
				{"spare_lost", part(all, ill, spare)},
				{"spare_after", part(all, back, spare)},
				{"failed_after_1s", part(all, ill, func(v sim.Visit) bool { return !v.Good })},
				{"lost_mean", lat.Mean() / ms},
				{"lost_p99", lat.At(0.99) / ms},
			}}
		}})
	}
	return s
}

func zoneRetries() Scenario {
	s := Scenario{
		Name: "zone-retries", Unit: "ms", Policies: []string{tryPlaces, tryOthers, tryAnyone},
		About: "three zones of ten servers, two attempts for each request, no memory of failures: one zone fails everything for the middle third of a minute",
	}
	s.Parts = []Part{{run: func(p sim.Policy, seed uint64) Outcome {
		w := inZones(p.Name, seed, func(s *sim.Site) { s.Fails = []sim.Span{{From: zoneBreaks, Until: zoneHeals}} })
		w.Attempts, w.Metric = 2, load.Pending{}
		w.Tried = map[string]sim.Knowledge{tryPlaces: sim.Places, tryOthers: sim.Endpoints}[p.Name]
		all := w.Run()
		during := func(v sim.Visit) bool { return v.At >= zoneBreaks && v.At < zoneHeals-second }
		return Outcome{Figures: []Figure{
			{"failed", part(all, during, func(v sim.Visit) bool { return !v.Good })},
			{"retried", part(all, during, func(v sim.Visit) bool { return v.Attempts > 1 })},
		}}
	}}}
	return s
}

// prompts is how large requests to language models are, in shape: most are short, and a few are a hundred times as long (Pareto, index 1.2, cut
// off at 200).
func prompts(random *rand.Rand) float64 {
	return min(math.Pow(1-random.Float64(), -1/1.2), 200)
}

func sizes() Scenario {
	s := Scenario{
		Name: "sizes", Unit: "ms", Policies: []string{costing, counting},
		About: "ten queues, requests of very different size at a load of about 0.7: one client counts requests, or what they cost",
	}
	s.Parts = []Part{{run: func(p sim.Policy, seed uint64) Outcome {
		w := sim.Placed{Rate: 30, Horizon: 2000 * second, Metric: load.Pending{}, Size: prompts, Counted: p.Name == costing, Seed: seed}
		mean := 0.0
		sample := rand.New(rand.NewPCG(1, 1))
		for range 1_000_000 {
			mean += prompts(sample) / 1e6
		}
		for range 10 {
			w.Sites = append(w.Sites, sim.Site{Latency: sim.Constant(0.7 * 10 * 1e6 / w.Rate / mean), Queue: true})
		}
		lat := visited(w.Run(), nil)
		return Outcome{Figures: []Figure{{"mean", lat.Mean() / ms}, {"p50", lat.At(0.5) / ms}, {"p99", lat.At(0.99) / ms}, {"p999", lat.At(0.999) / ms}}}
	}}}
	return s
}

func keys() Scenario {
	s := Scenario{
		Name: "keys", Unit: "ms", Policies: []string{hashed, unbounded, betterTwo},
		About: "twenty servers and ten thousand keys of unequal popularity (Zipf, exponent 0.9): how often a server has seen the key before, and the largest share of the work in flight that a server had when it was given a request, in means",
	}
	s.Parts = []Part{{run: func(p sim.Policy, seed uint64) Outcome {
		zipf := newZipf(10_000, 0.9)
		w := sim.Placed{Rate: 4000, Horizon: 20 * second, Metric: load.Pending{}, Seed: seed}
		if p.Name != betterTwo {
			w.Key = zipf
		}
		if p.Name == hashed {
			w.Bound = pick.Bound
		}
		for range 20 {
			w.Sites = append(w.Sites, sim.Site{Latency: sim.Exponential(unit)})
		}
		all := w.Run()
		random := rand.New(rand.NewPCG(seed, 99))
		seen, hits, most := map[[2]uint64]bool{}, 0, 0.0
		for _, v := range all {
			if p.Name == betterTwo {
				v.Key = zipf(random)
			}
			at := [2]uint64{v.Key, uint64(v.Site)}
			if seen[at] {
				hits++
			}
			seen[at] = true
			if v.At > 2*second {
				most = max(most, v.Share)
			}
		}
		return Outcome{Figures: []Figure{{"seen", float64(hits) / float64(len(all))}, {"most", most}}}
	}}}
	return s
}

// newZipf draws numbers below n, where the chance of the i-th is in proportion to i^-s.
func newZipf(n int, s float64) func(*rand.Rand) uint64 {
	sums := make([]float64, n)
	sum := 0.0
	for i := range sums {
		sum += math.Pow(float64(i+1), -s)
		sums[i] = sum
	}
	return func(random *rand.Rand) uint64 {
		u := random.Float64() * sum
		low, high := 0, n-1
		for low < high {
			if mid := (low + high) / 2; sums[mid] <= u {
				low = mid + 1
			} else {
				high = mid
			}
		}
		return pick.HashOf(fmt.Sprint(low))
	}
}

// visited returns the latencies of the good ones that keep keeps.
func visited(all []sim.Visit, keep func(sim.Visit) bool) sim.Latencies {
	var requests []sim.Request
	for _, v := range all {
		if v.Good && (keep == nil || keep(v)) {
			requests = append(requests, sim.Request{At: v.At, Latency: v.Latency})
		}
	}
	return sim.LatenciesOf(requests, nil)
}

// part is which part of those that among keeps is kept by keep.
func part(all []sim.Visit, among, keep func(sim.Visit) bool) float64 {
	n, of := 0, 0
	for _, v := range all {
		if among(v) {
			of++
			if keep(v) {
				n++
			}
		}
	}
	return float64(n) / float64(max(of, 1))
}
