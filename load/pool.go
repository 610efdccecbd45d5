package load

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// A pool is the endpoints that have said lately how busy they are.
type pool struct {
	size    int
	perCall float64 // probes

	// mu guards the rest. Nothing is locked under it.
	mu      sync.Mutex
	members []*probing // all endpoints
	held    []entry
	levels  levels
	credit  float64 // probes that calls have paid for
	turn    bool    // the worst is removed next, else the oldest
}

// An entry is one of the pool.
type entry struct {
	of   *probing
	at   int64 // when it said so
	uses int   // that are left
}

const (
	draws     = 4 // of an endpoint to probe, in the hope for one that has to be
	mostReuse = 4
	never     = -1 << 60
)

// join adds e to the endpoints, unless it is one.
func (p *pool) join(e *probing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.has(e) {
		return
	}
	e.member, e.place = len(p.members), nowhere
	e.asked, e.heard = never, never
	p.members = append(p.members, e)
}

// leave takes e from the endpoints, and out of the pool.
func (p *pool) leave(e *probing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.has(e) {
		return
	}
	last := len(p.members) - 1
	p.members[e.member] = p.members[last]
	p.members[e.member].member = e.member
	p.members[last] = nil
	p.members = p.members[:last]
	if e.place != nowhere {
		p.remove(e.place)
	}
}

// has reports whether e is one of the endpoints. mu is held.
func (p *pool) has(e *probing) bool { return e.member < len(p.members) && p.members[e.member] == e }

// small reports whether there is a place for each. mu is held.
func (p *pool) small() bool { return len(p.members) <= p.size }

// earn notes that a call was sent.
func (p *pool) earn(f *probingFleet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.members)
	rate := p.perCall * f.strangers(n) * min(float64(n)/float64(p.size), 1)
	p.credit = min(p.credit+rate, 2*max(p.perCall, 1))
}

// add puts e into the pool, or what it says now in place of what it said.
func (p *pool) add(e *probing, now int64, inFlight float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.has(e) {
		return // it has left
	}
	p.levels.add(inFlight)
	e.heard = now
	added := entry{of: e, at: now, uses: p.reuse()}
	if e.place != nowhere {
		p.held[e.place] = added
		return
	}
	if len(p.held) >= p.size {
		p.remove(p.oldest())
	}
	e.place = len(p.held)
	p.held = append(p.held, added)
}

// reuse is how often an entry may be used: as often as keeps the pool full, by Prequal's formula with a delta of 1. Where more are
// used up than come, that is mostReuse. mu is held.
func (p *pool) reuse() int {
	rest := (1-float64(p.size)/float64(len(p.members)))*p.perCall - 1
	if rest <= 2./mostReuse {
		return mostReuse
	}
	return int(max(1, 2/rest) + 0.5)
}

// remove takes entry i out of the pool. mu is held.
func (p *pool) remove(i int) {
	p.held[i].of.place = nowhere
	last := len(p.held) - 1
	if i != last {
		p.held[i] = p.held[last]
		p.held[i].of.place = i
	}
	p.held[last] = entry{}
	p.held = p.held[:last]
}

// oldest returns the number of the oldest entry. mu is held, and there is one.
func (p *pool) oldest() int {
	found := 0
	for i := range p.held {
		if p.held[i].at < p.held[found].at {
			found = i
		}
	}
	return found
}

// candidates returns the endpoints that have said something since, and above how many in flight one is hot.
func (p *pool) candidates(to *[mostPool]*probing, since int64) (n int, hot float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, held := range slices.Backward(p.held) { // what takes the place of one that is removed has been looked at
		if held.at < since {
			p.remove(i)
		}
	}
	for i := range p.held {
		to[i] = p.held[i].of
	}
	return len(p.held), p.levels.quantile()
}

// used charges the entry of chosen with a use, and removes one entry, the worst and the oldest in turn, unless few are left. A small
// fleet keeps all.
func (p *pool) used(chosen, worst *probing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.small() {
		return
	}
	if i := chosen.place; i != nowhere {
		if p.held[i].uses--; p.held[i].uses <= 0 {
			p.remove(i)
		}
	}
	p.turn = !p.turn
	switch {
	case len(p.held) < p.size/2:
	case p.turn && worst.place != nowhere:
		p.remove(worst.place)
	case !p.turn:
		p.remove(p.oldest())
	}
}

// probe returns an endpoint that has said nothing for a while, nor been asked.
func (p *pool) probe(now, fresh, timeout int64, random rand.Source) *probing {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.credit < 1 || len(p.members) == 0 {
		return nil
	}
	p.credit--
	for range draws {
		word := random.Uint64() >> 32
		e := p.members[int(word*uint64(len(p.members))>>32)]
		if now-e.heard > fresh && (e.asked <= e.heard || now-e.asked > timeout) {
			e.asked = now
			return e
		}
	}
	return nil
}

// levels are the latest in-flight counts that were reported, in the order of their coming and of their size.
type levels struct {
	at     float64 // which quantile is asked for
	of     [64]float64
	sorted [64]float64
	n      int
	next   int
}

// add adds x in place of the oldest.
func (l *levels) add(x float64) {
	if l.n == len(l.of) {
		old := l.of[l.next]
		i, _ := slices.BinarySearch(l.sorted[:l.n], old)
		copy(l.sorted[i:], l.sorted[i+1:l.n])
		l.n--
	}
	i, _ := slices.BinarySearch(l.sorted[:l.n], x)
	copy(l.sorted[i+1:l.n+1], l.sorted[i:l.n])
	l.sorted[i] = x
	l.n++
	l.of[l.next] = x
	l.next = (l.next + 1) % len(l.of)
}

// quantile is the value that so many do not exceed, 0 if there is none.
func (l *levels) quantile() float64 {
	if l.n == 0 {
		return 0
	}
	return l.sorted[min(int(l.at*float64(l.n)), l.n-1)]
}
