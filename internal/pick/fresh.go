package pick

import (
	"math/bits"
	"math/rand/v2"

	"github.com/belfry-go/belfry/internal/attempt"
)

// A history is the endpoints that a request was given to before, and where those are.
type history []any

// few is how many attempts of a request need no allocation.
const few = 8

// A grade is how much an endpoint has in common with those that were tried. Less is better.
type grade uint8

const (
	elsewhere grade = iota // another zone, as far as is known, and another host
	sameZone
	sameHost
	same // it was tried itself
)

// grade compares e with what was tried.
func (h history) grade(e *Endpoint) grade {
	g := elsewhere
	at := e.traits.Load()
	for _, end := range h {
		other, ok := end.(*Endpoint)
		if other == e {
			return same
		}
		if !ok || at == nil {
			continue
		}
		there := other.traits.Load()
		switch {
		case there == nil:
		case at.Host != "" && at.Host == there.Host:
			g = sameHost
		case at.Zone != "" && at.Zone == there.Zone:
			g = max(g, sameZone)
		}
	}
	return g
}

// draws is how often one endpoint is drawn in the hope for one that has nothing in common with what was tried. After that all are looked at.
// Both ways give each of them the same chance.
const draws = 8

// untried is Better for a request that was given to the endpoints in tried before. It costs a few draws, unless most endpoints are where
// the request was: then it looks at all.
func untried(now int64, random rand.Source, set []*Endpoint, tried *attempt.Set) (first, second int) {
	var room [few]any
	h := history(tried.AppendTo(room[:0]))
	found := [2]int{None, None}
	n := 0
	for range draws {
		i := One(random, len(set))
		if i == found[0] || h.grade(set[i]) != elsewhere {
			continue
		}
		found[n] = i
		if n++; n == len(found) {
			return order(now, set, found[0], found[1])
		}
	}
	first, second = survey(random, set, []class{{to: len(set), each: 1}}, h)
	if second == None {
		return first, None
	}
	return order(now, set, first, second)
}

// survey looks at all endpoints of classes, which are parts of set, and draws two different ones of the best grade, the near ones of these if there
// are any: the first by weight, and the second in the class of the first. The first is None if all were tried.
func survey(random rand.Source, set []*Endpoint, classes []class, h history) (first, second int) {
	first = None
	var best int // grade and distance
	var total uint64
	var in class
	for _, c := range classes {
		for i := c.from; i < c.to; i++ {
			g := h.grade(set[i])
			rank := 2*int(g) + c.far
			switch {
			case g == same || first != None && rank > best:
			case first == None || rank < best:
				best, total, first, in = rank, c.each, i, c
			default:
				if total += c.each; scale(random.Uint64(), total) < c.each {
					first, in = i, c
				}
			}
		}
	}
	return first, another(random, set, in, first, best, h)
}

// another draws one of the class that is not first, and of the same rank.
func another(random rand.Source, set []*Endpoint, in class, first, rank int, h history) (second int) {
	second = None
	n := 0
	for i := in.from; i < in.to && first != None; i++ {
		if i == first || 2*int(h.grade(set[i]))+in.far != rank {
			continue
		}
		if n++; One(random, n) == 0 {
			second = i
		}
	}
	return second
}

// scale scales 64 random bits to a number below n. Its bias is below n in 2^64.
func scale(word, n uint64) uint64 {
	high, _ := bits.Mul64(word, n)
	return high
}
