package pick_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/internal/pick"
)

// traited returns ready endpoints of equal load with these traits.
func traited(all ...pick.Traits) []*pick.Endpoint {
	set := equal(len(all))
	for i, t := range all {
		set[i].Characterise(t)
		set[i].Hint(true)
	}
	return set
}

func weights(all ...int) (traits []pick.Traits) {
	for _, w := range all {
		traits = append(traits, pick.Traits{Weight: w})
	}
	return traits
}

// shares counts which endpoint is the first that does not refuse.
func shares(g *pick.Groups, set []*pick.Endpoint, random rand.Source, picks int, tried *attempt.Set, refuses func(int) bool) []int {
	counts := make([]int, len(set))
	for range picks {
		turn := g.Begin(0, random, tried)
		for i := turn.Next(); i != pick.None; i = turn.Next() {
			if refuses == nil || !refuses(i) {
				counts[i]++
				break
			}
		}
	}
	return counts
}

// wantShares fails unless counts look like draws with chances in the proportion of parts: four deviations are allowed.
func wantShares(t *testing.T, what string, counts []int, parts ...float64) {
	t.Helper()
	var total, whole float64
	for i, n := range counts {
		total += float64(n)
		whole += parts[i]
	}
	sum, free := 0.0, -1.0
	for i, n := range counts {
		want := total * parts[i] / whole
		if want == 0 {
			if n > 0 {
				t.Errorf("%s: %v, want %v", what, counts, parts)
			}
			continue
		}
		sum += (float64(n) - want) * (float64(n) - want) / want
		free++
	}
	t.Logf("%s: %v, chi-square %.2f with %v degrees of freedom", what, counts, sum, free)
	if sum > free+4*math.Sqrt(2*free) {
		t.Errorf("%s: %v is not in the proportion of %v: chi-square %.1f with %v degrees of freedom", what, counts, parts, sum, free)
	}
}

func TestWeights(t *testing.T) {
	for _, c := range []struct {
		weights []int
		parts   []float64
	}{
		{[]int{98, 1, 1}, []float64{98, 1, 1}},
		{[]int{1, 98, 1}, []float64{1, 98, 1}},
		{[]int{0, 1, 2, 3, 3, -1}, []float64{1, 1, 2, 3, 3, 1}},
		{[]int{1_000_000, 1000}, []float64{1000, 1}},
		{[]int{5, 5, 5}, []float64{1, 1, 1}},
	} {
		t.Run(fmt.Sprint(c.weights, " of a million picks"), func(t *testing.T) {
			set := traited(weights(c.weights...)...)
			wantShares(t, "picks", shares(pick.NewGroups(set, nil, 2), set, source(t), 1_000_000, nil, nil), c.parts...)
		})
	}
	t.Run("hundreds of classes", func(t *testing.T) {
		var all []int
		var parts []float64
		for w := 1; w <= 300; w++ {
			all, parts = append(all, w), append(parts, float64(w))
		}
		set := traited(weights(all...)...)
		g := pick.NewGroups(set, nil, 2)
		wantShares(t, "picks", shares(g, set, source(t), 1_000_000, nil, nil), parts...)
		if got := asked(g, source(t), nil); len(got) != 300 {
			t.Errorf("%d of 300 were asked", len(got))
		}
	})
	t.Run("a class that has no room gives way in proportion", func(t *testing.T) {
		set := traited(weights(50, 30, 20, 20)...)
		g := pick.NewGroups(set, nil, 2)
		for _, hinted := range []bool{true, false} {
			set[0].Hint(hinted)
			counts := shares(g, set, source(t), 200_000, nil, func(i int) bool { return i == 0 })
			wantShares(t, fmt.Sprint("hinted ", hinted), counts, 0, 30, 20, 20)
		}
	})
	t.Run("the better of two inside a class", func(t *testing.T) {
		set := endpoints(constant(9), constant(0), constant(1), constant(10))
		for i, w := range []int{97, 1, 1, 1} {
			set[i].Characterise(pick.Traits{Weight: w})
			set[i].Hint(true)
		}
		counts := shares(pick.NewGroups(set, nil, 2), set, source(t), 300_000, nil, nil)
		wantShares(t, "picks", counts, 97, 2, 1, 0) // two thirds, one third and nothing of three
	})
}

// asked is the order in which one call asks all, if all refuse.
func asked(g *pick.Groups, random rand.Source, tried *attempt.Set) (all []int) {
	turn := g.Begin(0, random, tried)
	for i := turn.Next(); i != pick.None; i = turn.Next() {
		all = append(all, i)
	}
	return all
}

func TestTurnAsksEveryEndpointOnce(t *testing.T) {
	random := source(t)
	draw := rand.New(random)
	for n := range 150 {
		var traits []pick.Traits
		for range n {
			traits = append(traits, pick.Traits{
				Weight: draw.IntN(4), Priority: draw.IntN(3), Near: draw.IntN(2) == 0, Zone: fmt.Sprint(draw.IntN(3)), Host: fmt.Sprint(draw.IntN(5)),
			})
		}
		set := traited(traits...)
		tried := new(attempt.Set)
		for i, e := range set {
			e.Hint(draw.IntN(2) == 0)
			if i%10 == 3 {
				tried.Add(e)
			}
		}
		g := pick.NewGroups(set, map[int]int{1: 3}, 2)
		for _, tried := range []*attempt.Set{nil, tried} {
			order := asked(g, random, tried)
			got := slices.Compact(sorted(order))
			if len(order) != n || len(got) != n {
				t.Fatalf("of %d endpoints %d were asked, %d different ones: %v", n, len(order), len(got), order)
			}
			if tried == nil {
				continue
			}
			for i, at := range order {
				if tried.Has(set[at]) && i < n-tried.Len() {
					t.Fatalf("one that was tried before was asked at %d of %d: %v", i, n, order)
				}
			}
		}
	}
}

// TestPriorities has ten endpoints of priority 0, of which so many are ready, and ten of priority 1.
func TestPriorities(t *testing.T) {
	for _, c := range []struct {
		ready, missing, spare int
		first, second         float64
	}{
		{10, 0, 10, 1, 0},
		{8, 0, 10, 1, 0}, // 0.8 is more than 1/1.4
		{7, 0, 10, 0.98, 0.02},
		{5, 0, 10, 0.7, 0.3},
		{1, 0, 10, 0.14, 0.86},
		{0, 0, 10, 0, 1},
		{10, 10, 10, 0.7, 0.3}, // of twenty
		{5, 0, 0, 1, 0},
		{5, 0, 1, 0.7 / 0.84, 0.14 / 0.84},
	} {
		t.Run(fmt.Sprintf("%d of %d ready and %d spare", c.ready, 10+c.missing, c.spare), func(t *testing.T) {
			var traits []pick.Traits
			for i := range 20 {
				traits = append(traits, pick.Traits{Priority: i / 10 * 7})
			}
			set := traited(traits...)
			room := func(i int) bool { return i < c.ready || i >= 10 && i < 10+c.spare }
			for i, e := range set {
				e.Hint(room(i))
			}
			g := pick.NewGroups(set, map[int]int{0: c.missing}, 2)
			counts := shares(g, set, source(t), 200_000, nil, func(i int) bool { return !room(i) })
			first := 0
			for _, n := range counts[:10] {
				first += n
			}
			// One in 32 is a look at the first level, if that has room.
			one, two := c.first, c.second
			if c.ready > 0 {
				one, two = one+two/32, two*31/32
			}
			wantShares(t, "picks", []int{first, 200_000 - first}, one, two)
		})
	}
	t.Run("an endpoint that has room again is found without a hint", func(t *testing.T) {
		set := traited(pick.Traits{}, pick.Traits{Priority: 1})
		set[0].Hint(false)
		counts := shares(pick.NewGroups(set, nil, 2), set, source(t), 64_000, nil, nil)
		wantShares(t, "picks", counts, 1, 31)
		set[0].Hint(true)
		g := pick.NewGroups(set, nil, 2)
		set[0].Hint(false) // counted anew as the picks go on
		if counts := shares(g, set, source(t), 1000, nil, func(i int) bool { return i == 0 }); counts[1] != 1000 {
			t.Errorf("picks %v", counts)
		}
	})
	t.Run("the others by rank", func(t *testing.T) {
		set := traited(pick.Traits{Priority: 2}, pick.Traits{Priority: 0}, pick.Traits{Priority: 1})
		if got := asked(pick.NewGroups(set, nil, 2), source(t), nil); !slices.Equal(got, []int{1, 2, 0}) {
			t.Errorf("asked in the order %v", got)
		}
	})
}

func TestLocality(t *testing.T) {
	near, far := pick.Traits{Near: true, Zone: "a"}, pick.Traits{Zone: "b"}
	of := func(loads ...pick.Load) []*pick.Endpoint {
		set := endpoints(loads...)
		for i, e := range set {
			e.Hint(true)
			e.Characterise(far)
			if i < 2 {
				e.Characterise(near)
			}
		}
		return set
	}
	t.Run("near ones, as long as they cost no more than twice as much", func(t *testing.T) {
		set := of(constant(2), constant(2), constant(1), constant(1))
		counts := shares(pick.NewGroups(set, nil, 2), set, source(t), 64_000, nil, nil)
		wantShares(t, "picks", counts, 63./2, 63./2, .5, .5) // one in 64 is an excursion
	})
	t.Run("far ones, if near ones cost more", func(t *testing.T) {
		set := of(constant(2.1), constant(2.1), constant(1), constant(1))
		counts := shares(pick.NewGroups(set, nil, 2), set, source(t), 64_000, nil, nil)
		wantShares(t, "picks", counts, 0, 0, 1, 1)
	})
	t.Run("near ones, where latency is not known", func(t *testing.T) {
		set := of(counted{}, counted{}, counted{}, counted{})
		for range 50 {
			set[0].Hold()
			set[1].Hold()
		}
		counts := shares(pick.NewGroups(set, nil, 2), set, source(t), 10_000, nil, nil)
		wantShares(t, "picks", counts, 1, 1, 0, 0)
	})
	t.Run("far ones, if near ones have no room", func(t *testing.T) {
		set := of(counted{}, counted{}, counted{}, counted{})
		counts := shares(pick.NewGroups(set, nil, 2), set, source(t), 10_000, nil, func(i int) bool { return i < 2 })
		wantShares(t, "picks", counts, 0, 0, 1, 1)
	})
	t.Run("where nobody is near, all are alike", func(t *testing.T) {
		set := traited(far, far, far)
		counts := shares(pick.NewGroups(set, nil, 2), set, source(t), 30_000, nil, nil)
		wantShares(t, "picks", counts, 1, 1, 1)
	})
}

// A changing load is a constant one that can be set.
type changing struct{ cost *float64 }

func (c changing) Cost(int64, int) float64 { return *c.cost }

// Where many near ones are slow, those that are not are given 1.4 times their share at most: they may be those of which nobody knows yet.
func TestLocalityOfSlowZones(t *testing.T) {
	const picks = 100_000
	costs := make([]float64, 20) // the first half is near
	var loads []pick.Load
	for i := range costs {
		loads = append(loads, changing{&costs[i]})
	}
	set := endpoints(loads...)
	for i, e := range set {
		e.Hint(true)
		e.Characterise(pick.Traits{Near: i < 10})
	}
	g, random := pick.NewGroups(set, nil, 2), source(t)
	for _, c := range []struct {
		slow       int
		cost, left float64 // of the other near ones, and the part of the calls that leaves, but for excursions
	}{
		{0, 1.5, 0}, {1, 1.5, 0}, {5, 1.5, 0.3}, {7, 1.5, 0.58}, {5, 0.9, 0}, {1, 1.5, 0}, {10, 1.5, 1}, {0, 1.5, 0},
	} {
		for i := range costs {
			switch {
			case i >= 10:
				costs[i] = 1
			case i < c.slow:
				costs[i] = 20
			default:
				costs[i] = c.cost
			}
		}
		shares(g, set, random, 1000, nil, nil) // what was before is forgotten
		left := 0.0
		for i, n := range shares(g, set, random, picks, nil, nil) {
			if i >= 10 {
				left += float64(n) / picks
			}
		}
		pairs := float64(c.slow*(c.slow-1)) / 90 // both are slow
		want := 1 - (1-pairs)*(1-c.left)*63/64
		if math.Abs(left-want) > 0.03 {
			t.Errorf("%d of 10 near ones are slow, and the others cost %v: %.3f leave, want %.3f", c.slow, c.cost, left, want)
		}
	}
}

// TestElsewhere tries endpoints that share zones and hosts, in each way to choose.
func TestElsewhere(t *testing.T) {
	place := func(zone, host string) pick.Traits { return pick.Traits{Zone: zone, Host: host} }
	traits := []pick.Traits{
		place("a", "1"), place("a", "1"), place("a", "2"), // in the zone of the one that is tried
		place("b", "3"), place("b", "3"), place("c", "4"), place("", ""),
	}
	for _, c := range []struct {
		what  string
		tried []int
		parts []float64
	}{
		{"another zone", []int{0}, []float64{0, 0, 0, 1, 1, 1, 1}},
		{"another zone than either", []int{0, 3}, []float64{0, 0, 0, 0, 0, 1, 1}},
		{"the only one whose zone nobody knows", []int{0, 3, 5}, []float64{0, 0, 0, 0, 0, 0, 1}},
		{"another host of a zone", []int{0, 3, 5, 6}, []float64{0, 0, 1, 0, 0, 0, 0}},
		{"another one of a host", []int{0, 3, 5, 6, 2}, []float64{0, 1, 0, 0, 1, 0, 0}},
		{"the last", []int{0, 3, 5, 6, 2, 1}, []float64{0, 0, 0, 0, 1, 0, 0}},
	} {
		t.Run(c.what, func(t *testing.T) {
			set := traited(traits...)
			tried := new(attempt.Set)
			for _, i := range c.tried {
				tried.Add(set[i])
			}
			random := source(t)
			counts := make([]int, len(set))
			for range 20_000 {
				counts[first(random, set, tried)]++
				for _, e := range set {
					e.Hint(true) // order clears it
				}
			}
			wantShares(t, "all alike", counts, c.parts...)
			wantShares(t, "in groups", shares(pick.NewGroups(set, nil, 2), set, random, 20_000, tried, nil), c.parts...)
		})
	}
	t.Run("by weight", func(t *testing.T) {
		var all []pick.Traits
		for i, p := range traits {
			p.Weight = []int{5, 5, 5, 1, 2, 3, 4}[i]
			all = append(all, p)
		}
		set := traited(all...)
		tried := new(attempt.Set)
		tried.Add(set[1])
		counts := shares(pick.NewGroups(set, nil, 2), set, source(t), 50_000, tried, nil)
		wantShares(t, "picks", counts, 0, 0, 0, 1, 2, 3, 4)
	})
	t.Run("near before far, but for a zone that was tried", func(t *testing.T) {
		all := slices.Clone(traits)
		for i := range 3 {
			all[i].Near = true
		}
		set := traited(all...)
		g := pick.NewGroups(set, nil, 2)
		for at, parts := range map[int][]float64{0: {0, 0, 0, 1, 1, 1, 1}, 5: {1, 1, 1, 0, 0, 0, 0}} {
			tried := new(attempt.Set)
			tried.Add(set[at])
			wantShares(t, fmt.Sprint("after ", at), shares(g, set, source(t), 20_000, tried, nil), parts...)
		}
	})
	t.Run("every pair as likely, and the better of it", func(t *testing.T) {
		set := endpoints(constant(0), constant(1), constant(2), constant(3), constant(4))
		tried := new(attempt.Set)
		tried.Add(set[0])
		random := source(t)
		counts := make([]int, len(set))
		for range 60_000 {
			i, _ := pick.Better(0, random, set, tried)
			counts[i]++
		}
		wantShares(t, "picks", counts, 0, 3, 2, 1, 0)
	})
}
