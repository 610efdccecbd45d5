package demo

import (
	"sync"
	"time"
)

// A board is what the demo shows of itself while it runs: the demo writes, a display reads.
type board struct {
	plan    plan
	servers []*server
	stack   string

	mu      sync.Mutex // guards what follows
	current *measurement
	number  int // of current, from 1
	done    []PolicyResult
}

func (b *board) begin(m *measurement) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current, b.number = m, b.number+1
}

func (b *board) end(res PolicyResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = nil
	b.done = append(b.done, res)
}

// A view is the state of a board at one moment.
type view struct {
	// running is false before the first policy, between two, and after the last.
	running  bool
	policy   string
	number   int
	started  time.Time
	elapsed  time.Duration
	sent     int64
	errors   int64
	failed   int64 // as the scenario wants it
	inFlight int64
	p50, p99 time.Duration
	rows     []row
	done     []PolicyResult
}

// A row is one endpoint in a view.
type row struct {
	label    string
	answers  int64
	share    float64
	p50, p99 time.Duration
	inFlight int64
}

func (b *board) view(now time.Time) view {
	b.mu.Lock()
	m, v := b.current, view{number: b.number, done: b.done}
	b.mu.Unlock()
	if m == nil {
		return v
	}
	v.running = true
	v.policy = m.policy
	v.started = m.started
	v.elapsed = now.Sub(m.started)
	v.errors = m.errors.Load()
	v.failed = m.failed.Load()
	answers := m.answers()
	v.sent = m.sent.Load()
	v.inFlight = max(v.sent-v.errors-answers, 0)
	v.p50, _ = m.latency.Quantile(0.5)
	v.p99, _ = m.latency.Quantile(0.99)
	for i, s := range b.servers {
		e := &m.endpoints[i]
		r := row{label: s.Label, answers: e.answered.Load(), inFlight: s.inFlight.Load()}
		r.share = share(r.answers, answers)
		r.p50, _ = e.latency.Quantile(0.5)
		r.p99, _ = e.latency.Quantile(0.99)
		v.rows = append(v.rows, r)
	}
	return v
}

// A meter turns a count that grows from 0 into a rate over the last second.
type meter struct {
	since time.Time
	seen  []sample
}

type sample struct {
	at    time.Time
	count int64
}

// observe notes count at now, of what started at since, and returns the rate a second since the youngest sample that is at least a
// second old or, before there is one, since the start. Another start begins anew.
func (m *meter) observe(since, now time.Time, count int64) float64 {
	if !since.Equal(m.since) {
		m.since, m.seen = since, []sample{{at: since}}
	}
	m.seen = append(m.seen, sample{now, count})
	for len(m.seen) > 2 && now.Sub(m.seen[1].at) >= time.Second {
		m.seen = m.seen[1:]
	}
	span := now.Sub(m.seen[0].at)
	if span <= 0 {
		return 0
	}
	return float64(count-m.seen[0].count) / span.Seconds()
}
