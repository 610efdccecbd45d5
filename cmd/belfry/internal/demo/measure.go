package demo

import (
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/histogram"
)

// A measurement collects what happens under one policy, and may be read meanwhile.
type measurement struct {
	policy  string
	started time.Time
	sent    atomic.Int64
	errors  atomic.Int64
	// failure is the first error, so that there is something to tell.
	failure   atomic.Pointer[error]
	late      histogram.Histogram // how long after it was due a request was sent
	latency   histogram.Histogram
	endpoints [len(spread)]histogram.Histogram
}

func newMeasurement(policy string) *measurement {
	return &measurement{policy: policy, started: time.Now()}
}

// began counts a request that is sent now.
func (m *measurement) began(due time.Time) {
	m.sent.Add(1)
	m.late.Record(time.Since(due))
}

// ended counts a request that was answered by a server, with the time since it was due, or that failed. An error has no
// latency: the time to it is no time to an answer. One that the user cut off says nothing, and is forgotten.
func (m *measurement) ended(due time.Time, server int, err error, cutOff bool) {
	switch {
	case err == nil:
		latency := time.Since(due)
		m.endpoints[server].Record(latency)
		m.latency.Record(latency)
	case cutOff:
		m.sent.Add(-1)
	default:
		m.failure.CompareAndSwap(nil, &err)
		m.errors.Add(1)
	}
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
	}
	res.late, _ = m.late.Quantile(0.99)
	if err := m.failure.Load(); err != nil {
		res.firstError = *err
	}
	answers := max(m.latency.Count(), 1)
	for i, most := range spread {
		res.Endpoints = append(res.Endpoints, EndpointResult{
			MaxLatency: milliseconds(most),
			Share:      float64(m.endpoints[i].Count()) / float64(answers),
		})
	}
	return res
}

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
