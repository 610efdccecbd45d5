package pick

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/belfry-go/belfry/internal/attempt"
)

// HashOf returns a hash of text, the same in every program: FNV-1a with a finish that spreads it over all bits.
func HashOf(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return mix(h)
}

// mix is the finish of splitmix64: each bit of h changes half of all bits.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// Bound is how many times the mean work of its peers an endpoint may be given on account of keys.
const Bound = 1.25

// ranks is how many endpoints are asked in the order of a key. After that any with room will do: to look for the next costs a look at all.
const ranks = 4

// Ranked is the order in which the endpoints of [Groups] are asked for a call with a key. Every key has its own order of all endpoints, in which
// those of greater weight tend to come first. The first is asked whose work would stay within bound times the mean.
//
// It is "rendezvous hashing" (Thaler and Ravishankar, 1998), by weight as Schindelhauer and Schomaker (2005) have it, with the bounded loads
// of Mirrokni, Thorup and Zadimoghaddam (2016): when an endpoint comes or goes, only the keys move that it gains or loses.
type Ranked struct {
	g     *Groups
	key   uint64
	bound float64
	tried *attempt.Set
	level *level
	work  float64 // of the level, with the new call
	left  int     // how many to ask by rank
	rest  Rest
}

// Rank begins the order for key, a hash. A bound of 0 is none.
func (g *Groups) Rank(now int64, random rand.Source, key uint64, bound float64, tried *attempt.Set) Ranked {
	r := Ranked{g: g, key: key, bound: bound, tried: tried, rest: Rest{set: g.set, now: now, random: random, tried: tried, worse: None}}
	r.rest.grow()
	if len(g.levels) == 0 {
		return r
	}
	if len(g.levels) > 1 {
		g.recount(random)
	}
	// The key decides, so that it stays at one level while the shares do.
	r.level, r.left = g.levels[g.levelAt(float64(mix(key+1)>>11)/(1<<53))], ranks
	sum := 1
	for _, e := range g.set[r.level.from:r.level.to] {
		sum += e.Work()
	}
	r.work = float64(sum)
	return r
}

// Next returns the index of the endpoint to ask now, None when all have been asked.
func (r *Ranked) Next() int {
	for r.left > 0 {
		r.left--
		i := r.best(r.bound)
		if i == None {
			i = r.best(0)
		}
		if i == None {
			r.left = 0
		} else if r.rest.ask(i) {
			return r.g.at[i]
		}
	}
	if i := r.rest.Next(); i != None {
		return r.g.at[i]
	}
	return None
}

// best returns the endpoint of the level with the lowest rank for the key, of those that were neither asked nor tried and are within bound.
func (r *Ranked) best(bound float64) int {
	found, low := None, math.Inf(1)
	weight := float64(r.level.near.weight + r.level.far.weight)
	for _, c := range r.g.classes[r.g.firstClass(r.level):r.g.lastClass(r.level)] {
		most := math.MaxInt
		if bound > 0 {
			most = int(math.Ceil(bound * r.work * float64(c.each) / weight))
		}
		if i, draw := r.highest(c.from, c.to, most); i != None {
			if rank := rank(draw, c.each); rank < low {
				found, low = i, rank
			}
		}
	}
	return found
}

// highest returns which endpoint from from to to has the highest draw, of those that were neither asked nor tried and that would have no more than most to
// do. Where weights are equal that is the lowest rank.
func (r *Ranked) highest(from, to, most int) (found int, high uint64) {
	found = None
	for i, e := range r.g.set[from:to] {
		draw := mix(r.key^bits.RotateLeft64(r.g.ids[from+i], 32)) >> 11
		if draw < high || found != None && draw == high {
			continue
		}
		if e.Work() < most && !r.rest.wasAsked(from+i) && !r.tried.Has(e) {
			found, high = from+i, draw
		}
	}
	return found, high
}

// rank is exponential with a mean of one over weight: so the lowest is that of an endpoint with a chance that is its share of all weights.
func rank(draw, weight uint64) float64 {
	return -math.Log((float64(draw)+0.5)/(1<<53)) / float64(weight)
}
