package pick

import (
	"math/rand/v2"

	"github.com/belfry-go/belfry/internal/attempt"
)

// Effort is how many pairs [BetterIn] draws for a balancer. With half of all endpoints out, one in 256 picks then finds none that is in,
// and has to look at all.
const Effort = 4

// BetterIn is [Better] where some endpoints are out and not to be asked, as out says of their indexes. Being in comes before cost: it draws pairs until
// one of the two is in, as often as effort says. Then the second is None unless that is in too. If it never is, both are None and missed is
// true; where a share u is out, that is so u^(2 effort) of the time. The law, and the figures for effort, are Finagle's.
func BetterIn(now int64, random rand.Source, set []*Endpoint, tried *attempt.Set, out func(i int) bool, effort int) (first, second int, missed bool) {
	for range effort {
		first, second = Better(now, random, set, tried)
		if first == None {
			return None, None, false
		}
		firstIn, secondIn := !out(first), second != None && !out(second)
		switch {
		case firstIn && secondIn:
			return first, second, false
		case firstIn:
			return first, None, false
		case secondIn:
			return second, None, false
		}
	}
	return None, None, true
}
