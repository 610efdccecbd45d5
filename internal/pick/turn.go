package pick

import (
	"math/rand/v2"

	"github.com/belfry-go/belfry/internal/attempt"
)

// A Turn is the order in which the endpoints of [Groups] are asked for one call.
//
// It begins with a level, by how many there are ready, and in it with the near endpoints, unless the far ones are worth it. There it draws
// a class, with a chance that is its weight to those of all, and the better of two of it. If they refuse, the rest of the class that seems to have
// room is asked, the better of two at a time, then another class, drawn in the same way, the other half, the other levels by rank; and then all that seemed to have no
// room, and last those that were tried before.
type Turn struct {
	g      *Groups
	now    int64
	random rand.Source
	tried  *attempt.Set

	head  [4]int // what is asked first
	heads int
	next  int // in head

	levels, first, level int // how many were begun, with which, and the present one
	halves               int // of the level that were begun
	half                 half
	left                 uint64 // weight of the half's classes that were not drawn
	class                class
	walk                 walk // in the class
	rest                 Rest
	resting              bool
	drawn                [4]uint64 // classes, one bit each
	more                 []uint64  // for classes beyond the array
}

// Begin begins a Turn.
func (g *Groups) Begin(now int64, random rand.Source, tried *attempt.Set) Turn {
	t := Turn{g: g, now: now, random: random, tried: tried, level: -1, rest: Rest{set: g.set, now: now, random: random, tried: tried, worse: None}}
	t.rest.grow()
	if beyond := len(g.classes) - 64*len(t.drawn); beyond > 0 {
		t.more = make([]uint64, (beyond+63)/64)
	}
	if len(g.levels) == 0 {
		t.resting = true
		return t
	}
	t.first = g.level(random)
	t.nextLevel()
	return t
}

// Next returns the index of the endpoint to ask now, None when all have been asked.
func (t *Turn) Next() int {
	for !t.resting {
		if i := t.fromHead(); i != None {
			return t.g.at[i]
		}
		if t.fromClass() {
			continue
		}
		if !t.nextClass() && !t.nextHalf() && !t.nextLevel() {
			t.resting = true
		}
	}
	if i := t.rest.Next(); i != None {
		return t.g.at[i]
	}
	return None
}

// Beside returns the index of the endpoint that was drawn with the one that Next has just returned, and is to be asked after it; None if there is
// none.
func (t *Turn) Beside() int {
	if t.next == t.heads {
		return None
	}
	return t.g.at[t.head[t.next]]
}

// fromHead returns the next of those that were drawn.
func (t *Turn) fromHead() int {
	for t.next < t.heads {
		i := t.head[t.next]
		t.next++
		if t.rest.ask(i) {
			return i
		}
	}
	return None
}

// push puts endpoints at the end of the head. None is none.
func (t *Turn) push(ends ...int) {
	if t.next == t.heads {
		t.next, t.heads = 0, 0
	}
	for _, i := range ends {
		if i != None && t.heads < len(t.head) {
			t.head[t.heads] = i
			t.heads++
		}
	}
}

// fromClass puts the next two of the class that seem to have room into the head, the better first, and reports whether there are any.
func (t *Turn) fromClass() bool {
	n := t.class.to - t.class.from
	if n == 0 {
		return false
	}
	t.walk.begin(t.random, n)
	first, second := t.hinted(), t.hinted()
	if second != None {
		first, second = order(t.now, t.g.set, first, second)
	}
	t.push(first, second)
	return first != None
}

// hinted returns the next of the class that seems to have room.
func (t *Turn) hinted() int {
	for at := t.walk.next(); at != None; at = t.walk.next() {
		i := t.class.from + at
		if e := t.g.set[i]; e.Hinted() && !t.tried.Has(e) && !t.rest.wasAsked(i) {
			return i
		}
	}
	return None
}

// nextLevel begins another level: after the first, the others by rank.
func (t *Turn) nextLevel() bool {
	if t.levels == len(t.g.levels) {
		return false
	}
	switch {
	case t.levels == 0:
		t.level = t.first
	case t.levels == 1:
		t.level = 0
	default:
		t.level++
	}
	if t.levels > 0 && t.level == t.first {
		t.level++
	}
	t.levels++
	t.halves, t.half, t.left, t.class = 0, half{}, 0, class{}
	l := t.g.levels[t.level]
	if t.tried != nil {
		t.fresh(l)
	} else if !l.near.empty() && !l.far.empty() {
		t.compare(l)
	}
	return true
}

// fresh begins a level with two that have as little as possible in common with those that were tried.
func (t *Turn) fresh(l *level) {
	var room [few]any
	h := history(t.tried.AppendTo(room[:0]))
	first, second := survey(t.random, t.g.set, t.g.classes[t.g.firstClass(l):t.g.lastClass(l)], h)
	if second != None {
		first, second = order(t.now, t.g.set, first, second)
	}
	t.push(first, second)
}

func (g *Groups) firstClass(l *level) int {
	if l.near.empty() {
		return l.far.from
	}
	return l.near.from
}

func (g *Groups) lastClass(l *level) int {
	if l.far.empty() {
		return l.near.to
	}
	return l.far.to
}

// One pick in so many goes farther than it had to, where latency is measured: what it would cost there is not known otherwise.
const excursions = 64

// compare begins a level with the better of two near ones, and the better of two of the others before it if those are worth it: because the near one is
// slow, or too many near ones are. By the first alone those would get the work of all that are not known to be slow yet.
func (t *Turn) compare(l *level) {
	a, b := t.draw(l.near)
	c, d := t.draw(l.far)
	near, far := t.g.set[a], t.g.set[c]
	bare := near.load.Cost(t.now, 0)
	if bare <= 0 { // latency is not measured
		t.push(a, b)
		return
	}
	word, either, limit := t.random.Uint64(), bare, t.g.overflow*far.load.Cost(t.now, 0)
	if b != None && word&1 == 0 {
		either = t.g.set[b].load.Cost(t.now, 0)
	}
	slow := l.leaves(either > limit, t.random) || bare > limit
	if slow && far.Cost(t.now) < near.Cost(t.now) || scale(word, excursions) == 0 {
		t.push(c, a, b, d)
		return
	}
	t.push(a, b)
}

// draw draws a class of h and the better of two of it.
func (t *Turn) draw(h half) (first, second int) {
	c := t.g.drawClass(t.random, h)
	return t.pair(&t.g.classes[c])
}

// pair draws the better of two of c.
func (t *Turn) pair(c *class) (first, second int) {
	n := c.to - c.from
	if n == 1 {
		return c.from, None
	}
	first, second = Two(t.random, n)
	return order(t.now, t.g.set, c.from+first, c.from+second)
}

// drawClass draws a class by weight.
func (g *Groups) drawClass(random rand.Source, h half) int {
	from, to := h.from, h.to
	if to-from == 1 {
		return from
	}
	at := scale(random.Uint64(), h.weight)
	for to-from > 1 { // the class is within from and before to
		if mid := (from + to) / 2; g.classes[mid].before <= at {
			from = mid
		} else {
			to = mid
		}
	}
	return from
}

// nextHalf begins the other half of the level, the near one first.
func (t *Turn) nextHalf() bool {
	l := t.g.levels[t.level]
	for t.halves < 2 {
		t.halves++
		if t.half = l.near; t.halves == 2 {
			t.half = l.far
		}
		if !t.half.empty() {
			t.left = t.half.weight
			return t.nextClass()
		}
	}
	return false
}

// nextClass draws another class of the half.
func (t *Turn) nextClass() bool {
	if t.left == 0 {
		return false
	}
	i := t.undrawn(scale(t.random.Uint64(), t.left))
	*t.word(i) |= 1 << (i % 64)
	t.class = t.g.classes[i]
	t.left -= t.class.weight()
	t.walk = walk{}
	if t.tried == nil {
		t.push(t.pair(&t.class))
	}
	return true
}

// undrawn returns the class at this weight among those of the half that were not drawn.
func (t *Turn) undrawn(at uint64) int {
	for i := t.half.from; i < t.half.to; i++ {
		if *t.word(i)&(1<<(i%64)) != 0 {
			continue
		}
		w := t.g.classes[i].weight()
		if at < w {
			return i
		}
		at -= w
	}
	return t.half.to - 1
}

func (t *Turn) word(class int) *uint64 {
	if at := class / 64; at < len(t.drawn) {
		return &t.drawn[at]
	}
	return &t.more[class/64-len(t.drawn)]
}
