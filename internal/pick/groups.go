package pick

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// Groups are the endpoints of a set by priority, distance and weight. They do not change, but for what is counted in passing.
type Groups struct {
	// set is the endpoints class by class, and at where each of them is in the set that they were made of.
	set     []*Endpoint
	at      []int
	ids     []uint64 // of set
	classes []class
	levels  []*level
	// overflow is how many times what it costs farther away a call may cost near by.
	overflow float64
}

// A level is the endpoints of one priority.
type level struct {
	near, far half
	from, to  int // its endpoints
	known     int // how many they are, with those that are missing
	// ready is how many of known seemed to have room when they were counted.
	ready atomic.Int64
	// slow is the part of the near ones drawn lately, of whole, that cost more than they may. Of two that are drawn at a time one may be missed.
	slow atomic.Int32
}

// A half is a part of a level: the endpoints that are near, or the others.
type half struct {
	from, to int // its classes
	weight   uint64
}

func (h *half) empty() bool { return h.from == h.to }

// A class is the endpoints of a half that have the same weight.
type class struct {
	from, to int    // its endpoints
	each     uint64 // weight of one
	before   uint64 // weight of the classes before it in its half
	far      int    // 1 if it is in the far half
}

func (c *class) weight() uint64 { return c.each * uint64(c.to-c.from) }

// heaviest keeps the sum of all weights in 64 bits.
const heaviest = 1 << 32

// A member is an endpoint on its way into its class.
type member struct {
	at, priority, far int
	weight            uint64
}

func memberOf(i int, t Traits) member {
	m := member{at: i, priority: max(t.Priority, 0), far: 1, weight: min(uint64(max(t.Weight, 1)), heaviest)}
	if t.Near {
		m.far = 0
	}
	return m
}

// NewGroups returns the groups of set. missing is how many endpoints of each priority are known besides, and cannot be chosen; nil if none.
// overflow, at least 1, is how many times what it costs farther away a call may cost near by.
func NewGroups(set []*Endpoint, missing map[int]int, overflow float64) *Groups {
	members := make([]member, len(set))
	for i, e := range set {
		members[i] = memberOf(i, e.Traits())
	}
	slices.SortFunc(members, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.far, b.far), cmp.Compare(b.weight, a.weight), cmp.Compare(a.at, b.at))
	})
	g := &Groups{set: make([]*Endpoint, len(set)), at: make([]int, len(set)), ids: make([]uint64, len(set)), overflow: overflow}
	for i, m := range members {
		g.set[i], g.at[i], g.ids[i] = set[m.at], m.at, set[m.at].Traits().ID
		if i == 0 || m.priority != members[i-1].priority {
			g.levels = append(g.levels, &level{from: i, known: missing[m.priority]})
		}
		g.add(i, m)
	}
	for _, l := range g.levels {
		g.count(l)
	}
	return g
}

// add puts endpoint i into the last level, in the order of the members.
func (g *Groups) add(i int, m member) {
	l := g.levels[len(g.levels)-1]
	l.to = i + 1
	l.known++
	h := &l.near
	if m.far == 1 {
		h = &l.far
	}
	if h.empty() || g.classes[len(g.classes)-1].each != m.weight {
		if h.empty() {
			h.from = len(g.classes)
		}
		g.classes = append(g.classes, class{from: i, each: m.weight, before: h.weight, far: m.far})
		h.to = len(g.classes)
	}
	g.classes[len(g.classes)-1].to = i + 1
	h.weight += m.weight
}

// count counts who seems to have room.
func (g *Groups) count(l *level) {
	n := int64(0)
	for _, e := range g.set[l.from:l.to] {
		if e.Hinted() {
			n++
		}
	}
	l.ready.Store(n)
}

// A level of which less than 1/enough is ready is given no more than that share times enough, so that those that are left do not have to
// do the work of all. The factor, and the name of it, is Envoy's overprovisioning.
const enough = 1.4

// Of so many picks one goes to the levels before the one drawn, to see whether they are back: asking costs nothing.
const reviews = 32

// recount is how many endpoints are looked at in each pick, on average, to know how many of a level are ready.
const recount = 8

// level draws the level that is asked first.
func (g *Groups) level(random rand.Source) int {
	if len(g.levels) == 1 {
		return 0
	}
	g.recount(random)
	if One(random, reviews) == 0 {
		return 0
	}
	return g.levelAt(chance(random))
}

// levelAt returns the level at u, in [0, 1), of the shares that the levels have.
func (g *Groups) levelAt(u float64) int {
	var sum float64
	for _, l := range g.levels {
		sum += min(l.share(), 1-min(sum, 1))
	}
	at, before := u*sum, 0.0
	for i, l := range g.levels {
		before += min(l.share(), 1-min(before, 1))
		if at < before {
			return i
		}
	}
	return 0
}

// share is the most that l should get.
func (l *level) share() float64 {
	return min(1, enough*float64(l.ready.Load())/float64(l.known))
}

// recount counts a level that is due: the larger it is, the more rarely.
func (g *Groups) recount(random rand.Source) {
	for _, l := range g.levels {
		if n := l.to - l.from; n <= recount || One(random, n) < recount {
			g.count(l)
		}
	}
}

// chance returns a random number in [0, 1).
func chance(random rand.Source) float64 { return float64(random.Uint64()>>11) / (1 << 53) }

const (
	// lately is about how many near ones that were drawn say how many of all are slow.
	lately = 16
	whole  = 1 << 16
)

// leaves notes whether a near one that was drawn is slow, and reports whether a call is to leave because of all that are: those that are not are
// given no more than their share times enough. Where none is slow, nothing is written.
func (l *level) leaves(slow bool, random rand.Source) bool {
	part, to := l.slow.Load(), int32(0)
	if slow {
		to = whole
	}
	if step := (to - part) / lately; step != 0 {
		part += step
		l.slow.Store(part)
	}
	stay := enough * (1 - float64(part)/whole)
	return stay < 1 && chance(random) >= stay
}
