package balance

import (
	"sync"
	"sync/atomic"
	"time"
)

// A ring is the latest decisions, in slots that are used again and again, so that keeping one allocates nothing.
//
// A slot belongs to the decision of the highest number that was written into it; who comes for an older one finds it gone. The decisions of an endpoint
// whose permits are out are a list, newest first, from the head that the endpoint has. Numbers on it fall, so behind one that is gone all are. A
// number is put on a list once, so a head that is what it was has not changed meanwhile.
type ring struct {
	began time.Time
	last  atomic.Uint64
	slots []slot
}

// A slot is one decision. Its mu is held to read or write it, and for nothing else.
type slot struct {
	mu      sync.Mutex
	number  uint64
	older   uint64 // the next on the endpoint's list, 0 if there is none
	draft   draft
	at      time.Duration // since the ring began, as started is
	ended   Ending
	started time.Duration
	took    time.Duration
}

// newRing returns a ring of n decisions, nil if that is none.
func newRing(n int, began time.Time) *ring {
	if n == 0 {
		return nil
	}
	return &ring{began: began, slots: make([]slot, n)}
}

func (r *ring) slot(number uint64) *slot { return &r.slots[number%uint64(len(r.slots))] }

// add keeps d, and puts it on the list of the endpoint that was chosen.
func (r *ring) add(d *draft, list *atomic.Uint64) {
	number, at := r.last.Add(1), time.Since(r.began)
	s := r.slot(number)
	s.mu.Lock()
	if s.number > number {
		s.mu.Unlock()
		return // the others were so fast that it is gone before it was there
	}
	s.number, s.older, s.draft, s.at = number, 0, *d, at
	s.ended, s.started, s.took = Reserved, 0, 0
	s.mu.Unlock()
	for {
		head := list.Load()
		if !r.change(number, func(s *slot) { s.older = head }) || list.CompareAndSwap(head, number) {
			return
		}
	}
}

// change changes the slot of a decision, and reports whether that is still there.
func (r *ring) change(number uint64, f func(s *slot)) bool {
	s := r.slot(number)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number != number {
		return false
	}
	f(s)
	return true
}

// take takes the newest decision off a list, and notes what becomes of its permit. It returns 0 if there is none.
func (r *ring) take(list *atomic.Uint64, ended Ending) (number uint64) {
	if r == nil {
		return 0
	}
	for {
		number = list.Load()
		if number == 0 {
			return 0
		}
		older := uint64(0)
		here := r.change(number, func(s *slot) { older = s.older })
		if !list.CompareAndSwap(number, older) {
			continue
		}
		if !here {
			return 0
		}
		now := time.Since(r.began)
		r.change(number, func(s *slot) { s.ended, s.started = ended, now })
		return number
	}
}

// end notes how a call came back.
func (r *ring) end(number uint64, ended Ending) {
	if r == nil || number == 0 {
		return
	}
	now := time.Since(r.began)
	r.change(number, func(s *slot) { s.ended, s.took = ended, now-s.started })
}

// read returns all that are there.
func (r *ring) read() []Decision {
	last, n := r.last.Load(), uint64(len(r.slots))
	all := make([]Decision, 0, min(last, n))
	for number := max(last, n) - n + 1; number <= last; number++ {
		r.change(number, func(s *slot) { all = append(all, s.decision(r.began)) })
	}
	return all
}

// decision returns what s holds. Its mu is held.
func (s *slot) decision(began time.Time) Decision {
	d := &s.draft
	candidates := make([]Candidate, d.n)
	copy(candidates, d.all[:d.n])
	return Decision{
		Number: s.number, At: began.Add(s.at), Attempt: int(d.attempt), By: d.by,
		Candidates: candidates, Others: int(d.others), Chosen: int(d.asked), Ended: s.ended, Took: s.took,
	}
}
