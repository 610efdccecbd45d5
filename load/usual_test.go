package load

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// The cost of an endpoint like any other has a way of its own, which is to be no other cost. Endpoints get calls, fail, overtake, come and go
// at random.
func TestUsualCost(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	f := Expected{}.fleet()
	type call struct {
		of   *expected
		mark Mark
	}
	var members []*expected
	var out []call
	now, usual, unusual := int64(0), 0, 0
	for range 4 {
		members = append(members, f.Join("", now).(*expected))
	}
	for step := range 60_000 {
		now += int64(random.ExpFloat64() * 3000)
		e := members[random.IntN(len(members))]
		switch i := random.IntN(len(out) + 3); {
		case i < len(out):
			out[i].of.End(now, out[i].mark, outcome(random, step))
			out[i] = out[len(out)-1]
			out = out[:len(out)-1]
		case random.IntN(2000) == 0:
			e.Back(now)
		case random.IntN(2000) == 0:
			e.Leave()
			e.Rejoin(now-random.Int64N(2e7), now)
		default:
			out = append(out, call{e, e.Start(now)})
		}
		for i, e := range members {
			if e.present.unusual {
				unusual++
				continue
			}
			usual++
			held := random.IntN(3)
			if got, want := e.Cost(now, held), e.wholeCost(now, held, 0, e.next.level(now, f.decay)); got != want {
				t.Fatalf("seed %d, step %d: endpoint %d costs %v, want %v", seed, step, i, got, want)
			}
		}
	}
	if least := 5_000; usual < least || unusual < least {
		t.Errorf("seed %d: %d costs were usual and %d not, want %d at least", seed, usual, unusual, least)
	}
}

// outcome is a failure at times, and for the rest of them a success in most cases.
func outcome(random *rand.Rand, step int) Class {
	switch i := random.IntN(200); {
	case i == 0:
		return Cancelled
	case i == 1:
		return Rejected
	case step > 30_000 && i < 8:
		return Failure
	}
	return Success
}

// What choosing reads of an endpoint like any other is on one cache line, and an endpoint begins with one: the allocator's sizes of so many bytes
// are multiples of a line.
func TestCacheLines(t *testing.T) {
	const line, size = 64, 320
	of := reflect.TypeFor[expected]()
	if got := of.Size(); got > size || got <= 288 {
		t.Errorf("an endpoint has %d bytes, want more than 288 and at most %d", got, size)
	}
	present, _ := of.FieldByName("present")
	unusual, _ := present.Type.FieldByName("unusual")
	if end := present.Offset + unusual.Offset + unusual.Type.Size(); end > line {
		t.Errorf("what choosing reads ends at %d, want %d at most", end, line)
	}
}

// Who joined late is like any other when its slow start is over.
func TestSlowStartIsForgotten(t *testing.T) {
	f := Expected{}.fleet()
	serve := func(e Endpoint, from, to int64) {
		for now := from; now < to; now += 10_000 {
			e.End(now+1000, e.Start(now), Success)
		}
	}
	serve(f.Join("", 0), 0, second)
	late := f.Join("", second).(*expected)
	if serve(late, second, 10*second); !late.present.unusual || late.SlowStart(10*second) <= 1 {
		t.Error("after 9 s of 10 the slow start is over")
	}
	if serve(late, 10*second, 12*second); late.present.unusual || late.SlowStart(12*second) != 1 {
		t.Error("after 11 s of 10 the slow start goes on")
	}
	if late.Back(12 * second); late.SlowStart(12*second) <= 1 {
		t.Error("it does not begin again")
	}
}
