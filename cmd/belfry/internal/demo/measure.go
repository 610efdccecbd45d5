package demo

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/histogram"
	"github.com/belfry-go/belfry/cmd/belfry/internal/lab"
)

// A measurement collects what happens under one policy, and may be read meanwhile.
type measurement struct {
	policy  string
	demo    lab.Demo
	started time.Time
	sent    atomic.Int64
	errors  atomic.Int64
	// failure is the first error, so that there is something to tell.
	failure   atomic.Pointer[error]
	late      histogram.Histogram // how long after it was due a request was sent
	latency   histogram.Histogram
	endpoints []endpoint
	// What the scenario is about: requests that took long, that failed as they were to, and those due when it matters, with
	// how many of them went to the odd servers.
	stuck, failed, during, odd atomic.Int64
}

// An endpoint is what a measurement knows of one server.
type endpoint struct {
	latency  histogram.Histogram // of good answers
	answered atomic.Int64        // well or not
}

// A meantError is an answer that is a failure because the scenario wants it.
type meantError struct{ status string }

func (e *meantError) Error() string { return "answered " + e.status }

func newMeasurement(policy string, d lab.Demo, started time.Time) *measurement {
	return &measurement{policy: policy, demo: d, started: started, endpoints: make([]endpoint, len(d.Servers))}
}

// began counts a request that is sent now.
func (m *measurement) began(due time.Time) {
	m.sent.Add(1)
	m.late.Record(time.Since(due))
}

// ended counts a request that was answered by a server, with the time since it was due, or that failed. A failure has no
// latency: the time to it is no time to an answer. One that the user cut off says nothing, and is forgotten.
func (m *measurement) ended(due time.Time, server int, err error, cutOff bool) {
	meant, isMeant := errors.AsType[*meantError](err)
	switch {
	case err == nil:
		latency := time.Since(due)
		m.endpoints[server].latency.Record(latency)
		m.latency.Record(latency)
		if latency > lab.StuckAfter {
			m.stuck.Add(1)
		}
		m.answered(due, server)
	case cutOff:
		m.sent.Add(-1)
	case isMeant && m.demo.Judged == lab.Failed:
		m.failed.Add(1)
		m.answered(due, server)
	case isMeant:
		m.fail(fmt.Errorf("server %d %w", server, meant))
	default:
		m.fail(err)
	}
}

func (m *measurement) fail(err error) {
	m.failure.CompareAndSwap(nil, &err)
	m.errors.Add(1)
}

func (m *measurement) answered(due time.Time, server int) {
	m.endpoints[server].answered.Add(1)
	if !m.demo.When.Has(due.Sub(m.started).Microseconds()) {
		return
	}
	m.during.Add(1)
	if server >= m.demo.Odd {
		m.odd.Add(1)
	}
}

// answers is how many requests any server has answered.
func (m *measurement) answers() int64 {
	n := int64(0)
	for i := range m.endpoints {
		n += m.endpoints[i].answered.Load()
	}
	return n
}

// result sums up.
func (m *measurement) result() PolicyResult {
	res := PolicyResult{
		Name:     m.policy,
		Requests: m.sent.Load(),
		Errors:   m.errors.Load(),
		P50:      m.quantile(0.5, 1),
		P90:      m.quantile(0.9, 1),
		P99:      m.quantile(0.99, 1),
		P999:     m.quantile(0.999, minForP999),
		Figures: Figures{
			OddShare: share(m.odd.Load(), m.during.Load()),
			Stuck:    float64(m.stuck.Load()),
			Failed:   float64(m.failed.Load()),
		},
	}
	res.late, _ = m.late.Quantile(0.99)
	if err := m.failure.Load(); err != nil {
		res.firstError = *err
	}
	answers := m.answers()
	for i, s := range m.demo.Servers {
		res.Endpoints = append(res.Endpoints, EndpointResult{
			Label:      s.Label,
			MaxLatency: milliseconds(s.Most),
			Share:      share(m.endpoints[i].answered.Load(), answers),
		})
	}
	return res
}

// share returns which part of of n is; none of nothing.
func share(n, of int64) float64 { return float64(n) / float64(max(of, 1)) }

// quantile returns nil with fewer than atLeast answers: it would be one request's luck.
func (m *measurement) quantile(q float64, atLeast uint64) *Milliseconds {
	if m.latency.Count() < atLeast {
		return nil
	}
	d, ok := m.latency.Quantile(q)
	if !ok {
		return nil
	}
	ms := milliseconds(d)
	return &ms
}
