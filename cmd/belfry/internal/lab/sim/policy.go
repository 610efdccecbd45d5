package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/pick"
	"github.com/belfry-go/belfry/load"
)

// A Policy is a way to choose a server for a request. All but the default are here to be compared with.
type Policy struct {
	Name  string
	About string

	metric  func(*world) load.Metric
	choose  func(w *world, c *client, now int64) int
	watches bool          // has outlier detection and a guard rail
	heeds   *eject.Config // not nil: it leaves a server alone that asks for it
	decays  bool          // has a decay that can be chosen
	decay   time.Duration
}

// DefaultDecay is the decay of policies that have one.
const DefaultDecay = 10 * time.Second

// Default is the name of the policy that package balance takes.
const Default = "default"

// DefaultMetric is what package balance measures load by, with another decay if that is not 0.
func DefaultMetric(decay time.Duration) load.Metric { return load.Expected{Decay: decay} }

// Policies returns all of them, with the default decay.
func Policies() []Policy { return policies(0) }

func policies(decay time.Duration) []Policy {
	classicDecay := decay
	if decay == 0 {
		classicDecay = DefaultDecay
	}
	return []Policy{
		{Name: "random", About: "one at random", metric: always(load.Constant(nil)), choose: drawn},
		{Name: "round-robin", About: "each in turn, every client from a place of its own", metric: always(load.Constant(nil)), choose: inTurn},
		{Name: "full-scan", About: "of all, one with the fewest requests in flight", metric: always(load.Pending{}), choose: fewest},
		{Name: "in-flight", About: "of two different ones, that with fewer requests in flight", metric: always(load.Pending{}), choose: better},
		{Name: "in-flight-replacement", About: "the same, but the two may be one", metric: always(load.Pending{}), choose: betterReplaced},
		{Name: "in-flight-3", About: "of three different ones, that with the fewest requests in flight", metric: always(load.Pending{}), choose: leastOf(3)},
		{Name: "in-flight-4", About: "the same of four", metric: always(load.Pending{}), choose: leastOf(4)},
		{Name: "peak-ewma", About: "of two, the lower Peak EWMA, as Finagle and tower define it", metric: always(Classic{Decay: classicDecay}), choose: better, decays: true, decay: decay},
		{Name: "peak-ewma-penalty", About: "the same, where a failure counts as 5 s, as in linkerd", metric: always(Classic{Decay: classicDecay, Penalty: 5 * time.Second}), choose: better, decays: true, decay: decay},
		{Name: "peak-ewma-evidence", About: "the same, as package load has it: what is in flight and how calls end counts, too", metric: always(load.PeakEWMA{Decay: decay}), choose: better, decays: true, decay: decay},
		{Name: "p2c-oracle", About: "of two, that with fewer requests of all clients", metric: oracleMetric, choose: better},
		{Name: "jsq-oracle", About: "of all, that with the fewest requests of all clients", metric: always(load.Constant(nil)), choose: shortest},
		{Name: "reported", About: "the default, with what servers report in their answers", metric: always(load.Reported{Expected: load.Expected{Decay: decay}}), choose: better, decays: true, decay: decay},
		{Name: "probing", About: "the same, with servers that are asked, as in Prequal", metric: always(load.Probing{Reported: load.Reported{Expected: load.Expected{Decay: decay}}}), choose: better, decays: true, decay: decay},
		{Name: "outlier", About: "what belfry does, with outlier detection and its guard rail", metric: always(DefaultMetric(decay)), choose: betterIn, watches: true, decays: true, decay: decay},
		{Name: Default, About: "what belfry does", metric: always(DefaultMetric(decay)), choose: better, decays: true, decay: decay},
	}
}

// Accepted says how policies are named.
func Accepted() string {
	var names, decaying []string
	for _, p := range Policies() {
		names = append(names, p.Name)
		if p.decays {
			decaying = append(decaying, p.Name)
		}
	}
	return strings.Join(names, ", ") + "; with another decay than 10s: " + strings.Join(decaying, "/1s, ") + "/1s"
}

// Find returns the policy called name, which may have a decay after a slash.
func Find(name string) (Policy, error) {
	plain, text, chosen := strings.Cut(name, "/")
	decay := time.Duration(0)
	if chosen {
		var err error
		if decay, err = time.ParseDuration(text); err != nil || decay < time.Millisecond || decay > 24*time.Hour {
			return Policy{}, fmt.Errorf("policy %q: the decay must be within 1ms and 24h", name)
		}
	}
	for _, p := range policies(decay) {
		if p.Name == plain && (!chosen || p.decays) {
			p.Name = name
			return p, nil
		}
	}
	return Policy{}, fmt.Errorf("policy %q is not known; accepted: %s", name, Accepted())
}

// WithMetric returns a policy that balances by a metric of one's own.
func WithMetric(name string, metric load.Metric) Policy {
	return Policy{Name: name, metric: always(metric), choose: better}
}

// Heeding returns p, which takes the better of two, but leaves servers alone that ask for it in a failure, as far as rail lets it.
func Heeding(p Policy, rail eject.Config) Policy {
	p.choose, p.heeds = betterIn, &rail
	return p
}

func always(m load.Metric) func(*world) load.Metric { return func(*world) load.Metric { return m } }

// better is what package balance does.
func better(w *world, c *client, now int64) int {
	if c.chooser != nil {
		if best := c.chooser.Choose(now); best != nil { // as package balance does it
			return slices.IndexFunc(c.ends, func(ep *endpoint) bool { return ep.load == best })
		}
	}
	i, _ := pick.Better(now, w.source, c.set, nil)
	return i
}

func betterReplaced(w *world, c *client, now int64) int {
	n := len(c.set)
	if n == 0 {
		return pick.None
	}
	a, b := pick.One(w.source, n), pick.One(w.source, n)
	if c.set[b].Cost(now) < c.set[a].Cost(now) {
		return b
	}
	return a
}

// leastOf draws d different ones.
func leastOf(d int) func(*world, *client, int64) int {
	return func(w *world, c *client, now int64) int {
		n, best := len(c.set), pick.None
		var seen []int
		for i := max(n-d, 0); i < n; i++ { // Floyd's sampling
			at := pick.One(w.source, i+1)
			if slices.Contains(seen, at) {
				at = i
			}
			seen = append(seen, at)
			if best == pick.None || c.set[at].Cost(now) < c.set[best].Cost(now) {
				best = at
			}
		}
		return best
	}
}

func drawn(w *world, c *client, _ int64) int {
	if len(c.set) == 0 {
		return pick.None
	}
	return pick.One(w.source, len(c.set))
}

func inTurn(w *world, c *client, _ int64) int {
	n := len(c.set)
	if n == 0 {
		return pick.None
	}
	if c.turn < 0 {
		c.turn = pick.One(w.source, n)
	}
	c.turn = (c.turn + 1) % n
	return c.turn
}

func fewest(w *world, c *client, _ int64) int {
	return least(w, len(c.set), func(i int) int { held, _ := c.set[i].Held(); return held })
}

func shortest(w *world, c *client, _ int64) int {
	return least(w, len(c.set), func(i int) int { return w.servers[c.ends[i].server].inside })
}

// least returns the number below n of which what is least; of equals, one at random.
func least(w *world, n int, what func(int) int) int {
	found, low, equals := pick.None, 0, 0
	for i := range n {
		switch v := what(i); {
		case found == pick.None || v < low:
			found, low, equals = i, v, 1
		case v == low:
			if equals++; pick.One(w.source, equals) == 0 {
				found = i
			}
		}
	}
	return found
}
