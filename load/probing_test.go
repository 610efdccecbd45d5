package load

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// newProbing returns n endpoints of a fleet in which each took 100 ms to answer, and nobody has said anything.
func newProbing(p Probing, n int) (Chooser, []Endpoint) {
	fleet := p.Fleet().(Chooser)
	eps := make([]Endpoint, n)
	for i := range eps {
		eps[i] = fleet.Join(strconv.Itoa(i), 0)
	}
	for _, start := range []int64{0, 1_000_000} {
		for _, ep := range eps {
			ep.End(start+100_000, ep.Start(start), Success)
		}
	}
	return fleet, eps
}

func random() rand.Source { return rand.NewPCG(1, 2) }

// wantChoice fails unless fleet chooses the endpoint number i, none if that is -1.
func wantChoice(t *testing.T, fleet Chooser, eps []Endpoint, now int64, i int) {
	t.Helper()
	got := fleet.Choose(now)
	if i < 0 {
		if got != nil {
			t.Errorf("endpoint %d is chosen, want none", slices.Index(eps, got))
		}
		return
	}
	if got != eps[i] {
		t.Errorf("endpoint %d is chosen, want %d", slices.Index(eps, got), i)
	}
}

func TestProbingNeedsTwoReports(t *testing.T) {
	fleet, eps := newProbing(Probing{}, 3)
	wantChoice(t, fleet, eps, later, -1)
	say(eps[1], later, 0)
	wantChoice(t, fleet, eps, later, -1)
	say(eps[2], later, 5)
	wantChoice(t, fleet, eps, later, 1)
	t.Run("that are not too old", func(t *testing.T) {
		wantChoice(t, fleet, eps, later+1_000_001, -1)
	})
	t.Run("of endpoints that are there", func(t *testing.T) {
		say(eps[1], later, 0)
		say(eps[2], later, 5)
		eps[1].Leave()
		eps[1].Leave()
		say(eps[1], later, 0)
		wantChoice(t, fleet, eps, later, -1)
	})
}

// newUnequal is newProbing with endpoints that take 100, 200, 300 ms and so on.
func newUnequal(p Probing, n int) (Chooser, []Endpoint, int64) {
	fleet := p.Fleet().(Chooser)
	eps := make([]Endpoint, n)
	for i := range eps {
		eps[i] = fleet.Join(strconv.Itoa(i), 0)
	}
	now := int64(0)
	for range 50 {
		for i, ep := range eps {
			ep.End(now+int64(100_000*(i+1)), ep.Start(now), Success)
		}
		now += 1_000_000
	}
	return fleet, eps, now
}

func TestProbingHotAndCold(t *testing.T) {
	fleet, eps, now := newUnequal(Probing{Reported: Reported{Trust: time.Hour}}, 3)
	for range 60 { // most reports say 4
		say(eps[0], now, 4)
	}
	say(eps[0], now, 5)
	say(eps[1], now, 2)
	say(eps[2], now, 2)
	t.Run("of the cold the soonest", func(t *testing.T) { wantChoice(t, fleet, eps, now, 1) })
	say(eps[1], now, 6)
	say(eps[2], now, 6)
	t.Run("of the hot the one with the least in flight", func(t *testing.T) { wantChoice(t, fleet, eps, now, 0) })
	say(eps[2], now, 4)
	t.Run("a cold one first, however slow", func(t *testing.T) { wantChoice(t, fleet, eps, now, 2) })
}

func TestProbingTakesTheWordOfAServerThatHasNotAnswered(t *testing.T) {
	fleet := Probing{}.Fleet().(Chooser)
	a, b := fleet.Join("a", 0), fleet.Join("b", 0)
	for _, c := range []struct {
		a, b time.Duration
		want Endpoint
	}{{time.Second, 2 * time.Second, a}, {2 * time.Second, time.Second, b}} {
		a.(Reporter).Report(0, Report{InFlight: 1, Latency: c.a})
		b.(Reporter).Report(0, Report{InFlight: 1, Latency: c.b})
		if got := fleet.Choose(0); got != c.want {
			t.Errorf("of %v and %v the slower is chosen", c.a, c.b)
		}
	}
}

func TestProbingIsNoSinkhole(t *testing.T) {
	t.Run("D9 failures discount an endpoint that says it is free", func(t *testing.T) {
		fleet, eps := newProbing(Probing{}, 3)
		now := int64(later)
		for range 10 {
			eps[0].End(now+1000, eps[0].Start(now), Failure)
			now += 10_000
		}
		say(eps[0], now, 0)
		say(eps[1], now, 3)
		say(eps[2], now, 3)
		if got := fleet.Choose(now); got == eps[0] {
			t.Error("the failing endpoint is chosen")
		}
	})
	t.Run("D9 also where none is hot", func(t *testing.T) {
		fleet, eps := newProbing(Probing{Reported: Reported{Trust: time.Hour}}, 3)
		now := int64(later)
		for range 2 {
			eps[0].End(now+100_000, eps[0].Start(now), Failure)
			now += 200_000
		}
		for range 64 { // most reports say so much that nobody is hot
			say(eps[1], now, 1000)
		}
		say(eps[0], now, 3)
		say(eps[1], now, 4)
		say(eps[2], now, 4)
		if got := fleet.Choose(now); got == eps[0] {
			t.Error("the failing endpoint is chosen")
		}
	})
	t.Run("nor is one that answers probes alone", func(t *testing.T) {
		fleet, eps := newProbing(Probing{}, 3)
		for range 3 {
			eps[0].Start(later)
		}
		now := int64(later + 5_000_000)
		say(eps[0], now, 0) // it has lost them
		say(eps[1], now, 6)
		say(eps[2], now, 6)
		if got := fleet.Choose(now); got == eps[0] {
			t.Error("the endpoint that hangs is chosen")
		}
	})
}

func TestProbingUsesAReport(t *testing.T) {
	uses := func(n int) int {
		fleet, eps := newProbing(Probing{}, n)
		now := int64(later)
		for i := range 16 {
			say(eps[i], now, float64(i))
		}
		times := 0
		for range 100 {
			if fleet.Choose(now) == eps[0] {
				times++
			}
		}
		return times
	}
	t.Run("any number of times where there is a place for each", func(t *testing.T) {
		if got := uses(16); got != 100 {
			t.Errorf("used %d times, want 100", got)
		}
	})
	t.Run("once where there are many", func(t *testing.T) {
		if got := uses(100); got != 1 {
			t.Errorf("used %d times, want once", got)
		}
	})
}

// probesOf counts the probes that a call leads to in the long run. The servers answer them at once, and say that they have so many
// of other clients' requests; one's own calls are held at the endpoints, so many at each.
func probesOf(p Probing, n int, others float64, own int) float64 {
	fleet, eps := newProbing(p, n)
	source := rand.NewPCG(3, 4)
	probes := 0
	now := int64(later)
	for _, ep := range eps {
		for range own {
			ep.Start(now)
		}
		say(ep, now, others+float64(own))
	}
	const calls = 2000
	for range calls {
		now += 1_000_000
		mark := eps[0].Start(now)
		for ep := fleet.Probe(now, source); ep != nil; ep = fleet.Probe(now, source) {
			probes++
			say(ep, now, others+float64(own))
		}
		eps[0].End(now+100_000, mark, Success)
	}
	return float64(probes) / calls
}

func TestProbesForEachCall(t *testing.T) {
	for _, c := range []struct {
		name      string
		p         Probing
		n         int
		others    float64
		own       int
		low, high float64
	}{
		{"as many as it says", Probing{}, 100, 5, 0, 2.9, 3},
		{"one half", Probing{PerCall: 0.5}, 100, 5, 0, 0.4, 0.5},
		{"fewer where there are few", Probing{}, 4, 5, 0, 0.65, 0.75},
		{"half where half the load is one's own", Probing{}, 100, 5, 5, 1.4, 1.55},
		{"next to none where all of it is", Probing{}, 100, 0, 5, 0.1, 0.2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := probesOf(c.p, c.n, c.others, c.own); got < c.low || got > c.high {
				t.Errorf("%v probes for each call, want %v to %v", got, c.low, c.high)
			}
		})
	}
}

func TestProbeAsksNobodyTwice(t *testing.T) {
	fleet, eps := newProbing(Probing{PerCall: 50}, 1)
	asked := func(now int64) bool {
		eps[0].Start(now)
		eps[0].Start(now)
		any := false
		for range 100 {
			any = fleet.Probe(now, random()) != nil || any
		}
		return any
	}
	if !asked(later) {
		t.Fatal("not asked")
	}
	if asked(later + 999_999) {
		t.Error("asked again, while the first probe is out")
	}
	if !asked(later + 1_000_001) {
		t.Error("not asked after the first probe was lost")
	}
	say(eps[0], later+1_000_002, 100)
	if asked(later + 1_000_003) {
		t.Error("asked, though it has just reported")
	}
	if !asked(later + 1_200_000) {
		t.Error("not asked when its report is old")
	}
}

func TestLevels(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	l := levels{at: 0.84}
	if l.quantile() != 0 {
		t.Error("no reports have a quantile")
	}
	var all []float64
	for range 500 {
		x := float64(r.IntN(20))
		l.add(x)
		all = append(all, x)
		recent := slices.Clone(all[max(len(all)-64, 0):])
		slices.Sort(recent)
		want := recent[int(0.84*float64(len(recent)))]
		if got := l.quantile(); got != want {
			t.Fatalf("seed %d: quantile %v, want %v", seed, got, want)
		}
	}
}

func TestProbingValidate(t *testing.T) {
	for _, p := range []Probing{
		{PerCall: -1}, {PerCall: 101}, {Pool: -1}, {Pool: 65}, {MaxAge: -1}, {Hot: -0.1}, {Hot: 1}, {Reported: Reported{Trust: -1}},
	} {
		if p.Validate() == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
	if err := (Probing{PerCall: 100, Pool: 64, MaxAge: 1, Hot: 0.99}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestProbingIsSafe(t *testing.T) {
	fleet := Probing{}.Fleet().(Chooser)
	var eps []Endpoint
	for i := range 20 {
		eps = append(eps, fleet.Join(strconv.Itoa(i), 0))
	}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			source := rand.NewPCG(uint64(g), 1)
			for i := range 2000 {
				now := int64(i) * 1000
				ep := fleet.Choose(now)
				if ep == nil {
					ep = eps[i%20]
				}
				mark := ep.Start(now)
				for asked := fleet.Probe(now, source); asked != nil; asked = fleet.Probe(now, source) {
					say(asked, now, float64(i%7))
				}
				_ = ep.Cost(now, 1)
				ep.End(now+500, mark, Success)
				if i%100 == 0 && g == 0 {
					other := fleet.Join("x", now)
					say(other, now, 0)
					other.Leave()
				}
			}
		})
	}
	all.Wait()
	p := &fleet.(*probingFleet).pool
	if len(p.members) != 20 || len(p.held) > p.size {
		t.Errorf("%d members and %d in the pool", len(p.members), len(p.held))
	}
	for i, h := range p.held {
		if h.of.place != i {
			t.Errorf("number %d of the pool takes itself for number %d", i, h.of.place)
		}
	}
}
