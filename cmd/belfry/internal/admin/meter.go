package admin

import (
	"sync"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/histogram"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

// An observation is everything at one time.
type observation struct {
	at       time.Time
	state    proxy.State
	outcomes tally
}

// A Point is one second of the time line.
type Point struct {
	// Time is when it ended, in milliseconds since 1970.
	Time int64 `json:"t"`
	// Rate is how many requests came in a second, Rejected how many were turned away, Failed how many failed.
	Rate     float64 `json:"rate"`
	Rejected float64 `json:"rejected"`
	Failed   float64 `json:"failed"`
	// P50 and P99 are quantiles of the time until an answer began, null if there was none.
	P50 *float64 `json:"p50_ms"`
	P99 *float64 `json:"p99_ms"`
}

// recent is what a meter says about the last seconds.
type recent struct {
	point     Point   // over the whole window, not one second
	retries   float64 // a second
	sent      bool    // anything, so that there are shares
	endpoints map[endpointID]endpointRecent
}

type endpointRecent struct {
	rate, failed float64 // a second
	share        float64 // of all requests that were sent
	// failing says that more attempts failed than not when there were any the last time.
	failing bool
}

// A meter makes rates of counts: it is told what was counted once in a tick, and remembers a window of that.
type meter struct {
	mu        sync.Mutex // guards what follows
	latencies *histogram.Window
	quantiles [2]time.Duration
	counts    []counts // oldest first, at most window and one
	failing   map[endpointID]bool
	points    []Point // oldest first, at most timeline
	recent    recent
}

// counts is what was counted until a time.
type counts struct {
	at                         time.Time
	requests, rejected, failed uint64
	retries                    uint64
	endpoints                  map[endpointID]endpointCounts
}

type endpointCounts struct{ successes, failures, ignored uint64 }

func (c endpointCounts) all() uint64 { return c.successes + c.failures + c.ignored }

// An endpointID tells endpoints apart that are there at the same time: a removed one that is not over yet may have come back.
type endpointID struct {
	key, addr string
	nth       int
}

func newMeter(h *histogram.Histogram) *meter {
	return &meter{latencies: histogram.NewWindow(h, window), failing: map[endpointID]bool{}}
}

func countsOf(o observation) counts {
	c := counts{
		at: o.at, requests: o.state.Requests.Total, rejected: o.outcomes[rejected], failed: o.outcomes.failed(),
		retries: o.state.Retry.Retries, endpoints: make(map[endpointID]endpointCounts, len(o.state.Endpoints)),
	}
	for i, id := range identify(o.state.Endpoints) {
		e := &o.state.Endpoints[i]
		c.endpoints[id] = endpointCounts{e.Successes, e.Failures, e.Ignored}
	}
	return c
}

// identify returns the identity of each endpoint.
func identify(endpoints []proxy.EndpointState) []endpointID {
	ids := make([]endpointID, len(endpoints))
	seen := make(map[endpointID]int, len(endpoints))
	for i, e := range endpoints {
		id := endpointID{key: e.Key, addr: e.Addr}
		ids[i] = endpointID{key: e.Key, addr: e.Addr, nth: seen[id]}
		seen[id]++
	}
	return ids
}

// tick ends an interval; the first one only begins the next.
func (m *meter) tick(o observation) {
	now := countsOf(o)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latencies.Tick()
	if len(m.counts) == 0 {
		m.counts = append(m.counts, now)
		return
	}
	m.judge(m.counts[len(m.counts)-1], now)
	m.points = push(m.points, m.point(m.counts[len(m.counts)-1], now, 1), timeline)
	m.counts = push(m.counts, now, window+1)
	oldest := m.counts[0]
	m.recent = recent{
		point:   m.point(oldest, now, window),
		retries: perSecond(oldest, now, oldest.retries, now.retries),
	}
	m.recent.endpoints, m.recent.sent = m.endpoints(oldest, now)
}

// push appends v and drops the oldest beyond n.
func push[T any](all []T, v T, n int) []T {
	if len(all) == n {
		copy(all, all[1:])
		all = all[:n-1]
	}
	return append(all, v)
}

func (m *meter) point(from, to counts, ticks int) Point {
	p := Point{
		Time:     to.at.UnixMilli(),
		Rate:     perSecond(from, to, from.requests, to.requests),
		Rejected: perSecond(from, to, from.rejected, to.rejected),
		Failed:   perSecond(from, to, from.failed, to.failed),
	}
	if m.latencies.Quantiles(ticks, []float64{0.5, 0.99}, m.quantiles[:]) > 0 {
		p50, p99 := milliseconds(m.quantiles[0]), milliseconds(m.quantiles[1])
		p.P50, p.P99 = &p50, &p99
	}
	return p
}

// judge notes which endpoints fail. Where nothing was sent nothing is learned: one that fails is sent very little.
func (m *meter) judge(from, to counts) {
	for id, c := range to.endpoints {
		successes, failures := rise(from.endpoints[id].successes, c.successes), rise(from.endpoints[id].failures, c.failures)
		if successes+failures > 0 {
			m.failing[id] = failures > successes
		}
	}
	for id := range m.failing {
		if _, there := to.endpoints[id]; !there {
			delete(m.failing, id)
		}
	}
}

// endpoints says what each has had of what was sent, and whether anything was.
func (m *meter) endpoints(from, to counts) (map[endpointID]endpointRecent, bool) {
	sent := uint64(0)
	for id, c := range to.endpoints {
		sent += rise(from.endpoints[id].all(), c.all())
	}
	all := make(map[endpointID]endpointRecent, len(to.endpoints))
	for id, c := range to.endpoints {
		was := from.endpoints[id]
		e := endpointRecent{
			rate:    perSecond(from, to, was.all(), c.all()),
			failed:  perSecond(from, to, was.failures, c.failures),
			failing: m.failing[id],
		}
		if sent > 0 {
			e.share = float64(rise(was.all(), c.all())) / float64(sent)
		}
		all[id] = e
	}
	return all, sent > 0
}

// perSecond is by how much a count has risen a second.
func perSecond(from, to counts, was, is uint64) float64 {
	seconds := to.at.Sub(from.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(rise(was, is)) / seconds
}

// rise is by how much a count has risen; one that fell has begun again.
func rise(was, is uint64) uint64 {
	if is < was {
		return is
	}
	return is - was
}

func (m *meter) lately() recent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recent
}

func (m *meter) latest() Point {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.points) == 0 {
		return Point{}
	}
	return m.points[len(m.points)-1]
}

// history returns a copy of the time line.
func (m *meter) history() []Point {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Point{}, m.points...)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
