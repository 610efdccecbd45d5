//go:build !race

package load

import "testing"

func TestAllocsProbing(t *testing.T) {
	fleet, eps := newProbing(Probing{}, 32)
	source := random()
	now := int64(later)
	if n := testing.AllocsPerRun(1000, func() {
		now += 10_000
		ep := fleet.Choose(now)
		if ep == nil {
			ep = eps[0]
		}
		mark := ep.Start(now)
		for asked := fleet.Probe(now, source); asked != nil; asked = fleet.Probe(now, source) {
			say(asked, now, 3)
		}
		ep.End(now+1000, mark, Success)
	}); n != 0 {
		t.Errorf("%v allocations for each call, want none", n)
	}
}
