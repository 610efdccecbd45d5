package load

import (
	"math"
	"testing"
	"time"
)

// newReported returns endpoints of a fleet that has answered: each took 100 ms.
func newReported(r Reported, n int) []Endpoint {
	fleet := r.Fleet()
	eps := make([]Endpoint, n)
	for i := range eps {
		eps[i] = fleet.Join("", 0)
	}
	for _, start := range []int64{0, 1_000_000} { // after the second all know what is usual
		for _, ep := range eps {
			ep.End(start+100_000, ep.Start(start), Success)
		}
	}
	return eps
}

const later = 1_100_000

func say(ep Endpoint, now int64, inFlight float64) {
	ep.(Reporter).Report(now, Report{InFlight: inFlight})
}

func TestReportedPrefersWhoHasLess(t *testing.T) {
	eps := newReported(Reported{}, 3)
	say(eps[0], later, 9)
	say(eps[1], later, 1)
	busy, free, silent := eps[0].Cost(later, 0), eps[1].Cost(later, 0), eps[2].Cost(later, 0)
	if !(free < silent && silent < busy) {
		t.Errorf("costs %v of the free, %v of the silent and %v of the busy one", free, silent, busy)
	}
	if got := busy / free; math.Abs(got-10./2) > 0.01 {
		t.Errorf("the busy one costs %v times as much, want 5", got)
	}
}

func TestReportedCountsItsOwnOnce(t *testing.T) {
	eps := newReported(Reported{}, 2)
	for range 4 {
		eps[0].Start(later)
	}
	say(eps[0], later, 6) // of which four are known
	say(eps[1], later, 2)
	if a, b := eps[0].Cost(later, 4), eps[1].Cost(later, 0); math.Abs(a/b-7./3) > 0.01 {
		t.Errorf("costs %v and %v, want 7 to 3", a, b)
	}
	say(eps[0], later, 1) // of a server that counts otherwise
	if a := eps[0].Cost(later, 4); a <= 0 {
		t.Errorf("cost %v", a)
	}
}

func TestReportsFadeToTheMean(t *testing.T) {
	eps := newReported(Reported{Trust: time.Second}, 3)
	say(eps[0], later, 9)
	say(eps[1], later, 1)
	unit := eps[2].Cost(later, 1) - eps[2].Cost(later, 0)
	for _, c := range []struct {
		after time.Duration
		want  float64
	}{{0, 10}, {time.Second, 6 + 4/math.E}, {time.Minute, 6}} {
		if got := eps[0].Cost(later+c.after.Microseconds(), 0) / unit; math.Abs(got-c.want) > 0.01 {
			t.Errorf("%v after its report the busy one costs %v, want %v", c.after, got, c.want)
		}
	}
	t.Run("as soon as a request is answered, unless said otherwise", func(t *testing.T) {
		eps := newReported(Reported{}, 2)
		for range 1000 {
			say(eps[1], later, 9)
		}
		say(eps[0], later, 0)
		unit := eps[0].Cost(later, 1) - eps[0].Cost(later, 0)
		// Nine in flight that take 100 ms are one answer in 10 ms or so.
		if got, want := eps[0].Cost(later+10_000, 0)/unit, 10-9/math.E; math.Abs(got-want) > 0.3 {
			t.Errorf("cost %v, want %v", got, want)
		}
	})
}

func TestReportedIsExpectedWhereNobodyReports(t *testing.T) {
	for _, held := range []int{0, 1, 7} {
		plain := newExpectedPair(Expected{})
		told := newExpectedPair(Reported{})
		for i := range plain {
			// What the latest answer was off is nothing after a while.
			if a, b := plain[i].Cost(900_000_000, held), told[i].Cost(900_000_000, held); math.Abs(a/b-1) > 1e-3 {
				t.Errorf("endpoint %d with %d held costs %v, and %v by Expected", i, held, b, a)
			}
		}
	}
}

// newExpectedPair returns two endpoints, of which the second is slower and has a call out.
func newExpectedPair(m Metric) [2]Endpoint {
	fleet := m.Fleet()
	eps := [2]Endpoint{fleet.Join("a", 0), fleet.Join("b", 0)}
	now := int64(0)
	for range 100 {
		for i, ep := range eps {
			mark := ep.Start(now)
			ep.End(now+int64(10_000*(1+i)), mark, Success)
		}
		now += 50_000
	}
	eps[1].Start(now)
	return eps
}

// Whatever a server says of itself: failures count against it.
func TestReportedCountsFailures(t *testing.T) {
	t.Run("D9 failures discount an endpoint that says it is free", func(t *testing.T) {
		eps := newReported(Reported{}, 2)
		now := int64(later)
		for range 10 {
			mark := eps[0].Start(now)
			say(eps[0], now+1000, 1)
			eps[0].End(now+1000, mark, Failure)
			now += 10_000
		}
		say(eps[0], now, 0)
		say(eps[1], now, 5)
		if failing, busy := eps[0].Cost(now, 0), eps[1].Cost(now, 0); failing <= busy {
			t.Errorf("the failing one costs %v, the busy one %v", failing, busy)
		}
	})
}

func TestReportValid(t *testing.T) {
	for r, want := range map[Report]bool{
		{}:                         true,
		{InFlight: 3.5}:            true,
		{InFlight: -1}:             false,
		{InFlight: math.NaN()}:     false,
		{InFlight: math.Inf(1)}:    false,
		{InFlight: 1, Latency: 1}:  true,
		{InFlight: 1, Latency: -1}: false,
	} {
		if r.Valid() != want {
			t.Errorf("%v is valid: %v", r, !want)
		}
	}
}

func TestReportedValidate(t *testing.T) {
	for _, r := range []Reported{{Trust: -1}, {Expected: Expected{Decay: -1}}} {
		if r.Validate() == nil {
			t.Errorf("%v is accepted", r)
		}
	}
	if err := (Reported{Trust: 1}).Validate(); err != nil {
		t.Error(err)
	}
}
