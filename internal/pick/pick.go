package pick

import (
	"math/bits"
	"math/rand/v2"

	"github.com/belfry-go/belfry/internal/attempt"
)

// None is the index of no endpoint.
const None = -1

// Two returns two different numbers below n, each ordered pair as likely as any other, for n of 2 and more. It is Floyd's
// sampling: the second number is drawn from all, and what it takes away from the first goes to the last. Drawing with
// replacement would give both places to one endpoint once in n times.
func Two(random rand.Source, n int) (first, second int) {
	word := random.Uint64()
	first, second = below(word>>32, n-1), below(word&(1<<32-1), n)
	if first == second {
		first = n - 1
	}
	return first, second
}

// One returns a number below n.
func One(random rand.Source, n int) int { return below(random.Uint64()>>32, n) }

// below scales 32 random bits to a number below n. Its bias is below n in 2^32.
func below(word uint64, n int) int {
	high, _ := bits.Mul64(word<<32, uint64(n))
	return int(high)
}

// Better draws two different endpoints of set and returns their indexes, the one that costs less at now first: ask
// it, then the other, then the [Rest]. The second is None if there is one endpoint only, both if there is none.
//
// If the request was given to the endpoints in tried before, it draws among the others: those in another zone and on another host if there
// are any, else those on another host, else any, each as likely as any other. Both are None if all were tried.
func Better(now int64, random rand.Source, set []*Endpoint, tried *attempt.Set) (first, second int) {
	switch {
	case len(set) == 0:
		return None, None
	case len(set) == 1:
		return 0, None
	case tried != nil:
		return untried(now, random, set, tried)
	}
	first, second = Two(random, len(set))
	return order(now, set, first, second)
}

// order puts the cheaper of two first; of equals, the one that was drawn first.
func order(now int64, set []*Endpoint, first, second int) (int, int) {
	if set[first].Cost(now) <= set[second].Cost(now) {
		return first, second
	}
	return second, first
}

// A Rest goes over the endpoints of a set that have not been asked yet: first those that seem to have room, the better of two at a time, then the
// others, and last those that were tried before; in an order of its own for each call, so that none is everybody's first choice, nor that of all who found
// another without room.
type Rest struct {
	set    []*Endpoint
	now    int64
	random rand.Source
	tried  *attempt.Set
	walk   walk // begun when the first is asked for
	worse  int  // of two of which the better was returned, or None
	pass   int
	asked  [16]uint64 // one bit each: a hint may change while the others are asked
	more   []uint64   // for endpoints beyond the array
}

// NewRest returns the Rest after first and second, either of which may be None.
func NewRest(now int64, random rand.Source, set []*Endpoint, first, second int, tried *attempt.Set) Rest {
	r := Rest{set: set, now: now, random: random, tried: tried, worse: None}
	r.grow()
	r.ask(first)
	r.ask(second)
	return r
}

// grow makes room for all of the set.
func (r *Rest) grow() {
	if beyond := len(r.set) - 64*len(r.asked); beyond > 0 {
		r.more = make([]uint64, (beyond+63)/64)
	}
}

const (
	passHinted = iota
	passUntried
	passAll
)

// Next returns the index of the endpoint to ask now, None when all have been asked.
func (r *Rest) Next() int {
	r.walk.begin(r.random, len(r.set))
	if r.pass == passHinted {
		if i := r.better(); i != None {
			return i
		}
		r.pass++
		r.walk.again()
	}
	passes := passAll + 1
	if r.tried == nil {
		passes = passAll // nothing is left for it
	}
	for ; r.pass < passes; r.pass++ {
		for i := r.walk.next(); i != None; i = r.walk.next() {
			if r.due(i) && r.ask(i) {
				return i
			}
		}
		r.walk.again()
	}
	return None
}

// better returns the better of two that seem to have room, and the other one when it is asked again.
func (r *Rest) better() int {
	i := r.worse
	r.worse = None
	if i == None {
		i = r.hinted()
		if other := r.hinted(); other != None {
			i, r.worse = order(r.now, r.set, i, other)
		}
	}
	r.ask(i)
	return i
}

// hinted returns the next that seems to have room.
func (r *Rest) hinted() int {
	for i := r.walk.next(); i != None; i = r.walk.next() {
		if r.due(i) && !r.wasAsked(i) {
			return i
		}
	}
	return None
}

// due reports whether endpoint i belongs to the present pass.
func (r *Rest) due(i int) bool {
	switch r.pass {
	case passHinted:
		return r.set[i].Hinted() && !r.tried.Has(r.set[i])
	case passUntried:
		return !r.tried.Has(r.set[i])
	}
	return true
}

// ask marks endpoint i as asked, and reports whether it was not before.
func (r *Rest) ask(i int) bool {
	if i == None {
		return false
	}
	word := r.word(i)
	bit := uint64(1) << (i % 64)
	fresh := *word&bit == 0
	*word |= bit
	return fresh
}

// wasAsked reports whether endpoint i was.
func (r *Rest) wasAsked(i int) bool { return *r.word(i)&(1<<(i%64)) != 0 }

func (r *Rest) word(i int) *uint64 {
	if at := i / 64; at < len(r.asked) {
		return &r.asked[at]
	}
	return &r.more[i/64-len(r.asked)]
}
