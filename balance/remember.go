package balance

import (
	"slices"
	"sync"
	"time"

	"github.com/belfry-go/belfry/load"
)

// mostRemembered is how many removed endpoints are remembered.
const mostRemembered = 1024

// A memory is what was measured of endpoints that were removed lately, which have left the fleet: what is not there must not say what is usual,
// nor hold a trial that others wait for.
type memory struct {
	mu   sync.Mutex // nothing is called under it
	kept []past     // the oldest first
}

// A past is what was measured of one.
type past struct {
	key, addr  string
	generation int
	load       load.Rejoiner
	left       int64 // in the time of the fleet
	until      time.Time
}

// keep remembers p, in place of what was known of the same endpoint, and forgets whom there is no room for.
func (m *memory) keep(p past, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(now)
	if i := m.find(p.key, p.addr, p.generation); i >= 0 {
		m.kept = slices.Delete(m.kept, i, i+1)
	}
	if len(m.kept) == mostRemembered {
		m.kept = slices.Delete(m.kept, 0, 1)
	}
	m.kept = append(m.kept, p)
}

// take returns what is known of an endpoint, which is then no longer remembered.
func (m *memory) take(key, addr string, generation int, now time.Time) (p past, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(now)
	i := m.find(key, addr, generation)
	if i < 0 {
		return past{}, false
	}
	p = m.kept[i]
	m.kept = slices.Delete(m.kept, i, i+1)
	return p, true
}

// size is how many are remembered.
func (m *memory) size(now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(now)
	return len(m.kept)
}

// forget drops those whose time is over. All are kept equally long, so they stand in that order. mu is held.
func (m *memory) forget(now time.Time) {
	n := 0
	for n < len(m.kept) && !now.Before(m.kept[n].until) {
		n++
	}
	m.kept = slices.Delete(m.kept, 0, n)
}

func (m *memory) find(key, addr string, generation int) int {
	return slices.IndexFunc(m.kept, func(p past) bool { return p.key == key && p.addr == addr && p.generation == generation })
}

// enrol returns the load of ep, which has a service now: what was measured when it was there before, if that is remembered. It panics as the
// metric does.
func (b *Balancer[Req, Res]) enrol(ep *endpoint[Req, Res]) load.Endpoint {
	now := b.now()
	if p, ok := b.memory.take(ep.key, ep.addr, ep.generation, time.Now()); ok {
		p.load.Rejoin(p.left, now)
		return p.load
	}
	return b.fleet.Join(ep.key, now)
}

// part takes measured, the load of ep, out of the fleet, and remembers it. It is called once for each that joined, unless Close comes first.
func (b *Balancer[Req, Res]) part(ep *endpoint[Req, Res], measured load.Endpoint) {
	measured.Leave()
	known, ok := measured.(load.Rejoiner)
	if !ok || b.cfg.Remember <= 0 {
		return
	}
	now := time.Now()
	b.memory.keep(past{ep.key, ep.addr, ep.generation, known, b.now(), now.Add(b.cfg.Remember)}, now)
}
