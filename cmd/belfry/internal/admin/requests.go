package admin

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/cmd/belfry/internal/histogram"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

// An outcome is how a request ended, in one of a few classes.
type outcome uint8

const (
	succeeded   outcome = iota // a server's answer below 400
	clientError                // a server's answer from 400 to 499, or a request that could not be read
	serverError                // a server's answer from 500 on
	rejected                   // no room: answered here, at once or after a wait
	timedOut                   // no answer in time
	unreachable                // no server could be asked, or the one that was failed
	broken                     // the answer broke off before it began
	clientGone                 // the client left first

	outcomes
)

// String returns the class as metrics and JSON call it.
func (o outcome) String() string {
	return [...]string{"success", "client_error", "server_error", "rejected", "timeout", "unreachable", "broken", "client_gone"}[o]
}

// outcomeOf returns the class of a request. Its reason tells the proxy's own answers from a server's.
func outcomeOf(r proxy.Record) outcome {
	own := r.Reason != ""
	switch {
	case r.Status == belfryhttp.StatusClientGone && own:
		return clientGone
	case r.Status == 0:
		return broken
	case own && (r.Status == http.StatusServiceUnavailable || r.Status == http.StatusTooManyRequests):
		return rejected
	case own && r.Status == http.StatusGatewayTimeout:
		return timedOut
	case own && r.Status == http.StatusBadGateway:
		return unreachable
	case r.Status < 400:
		return succeeded
	case r.Status < 500:
		return clientError
	}
	return serverError
}

// failed reports whether the client got less than it asked for, by no fault of its own and not for want of room.
func (o outcome) failed() bool {
	return o == serverError || o == timedOut || o == unreachable || o == broken
}

// timed reports whether a request of this class says how long requests take. One that no server had does not, and would make the
// proxy look fastest when it serves nobody.
func (o outcome) timed() bool {
	return o == succeeded || o == clientError || o == serverError || o == timedOut
}

// tally counts requests by class.
type tally [outcomes]uint64

func (t *tally) failed() (n uint64) {
	for o := range outcomes {
		if o.failed() {
			n += t[o]
		}
	}
	return n
}

type atomicTally [outcomes]atomic.Uint64

func (t *atomicTally) read() (n tally) {
	for o := range t {
		n[o] = t[o].Load()
	}
	return n
}

// requests counts what it is told of, at the price of a few atomic additions for each.
type requests struct {
	outcomes atomicTally
	latency  histogram.Histogram // of those that are timed
	duration *prometheus.HistogramVec
	observer [outcomes]prometheus.Observer
	waits    *prometheus.HistogramVec
	waited   prometheus.Observer

	mu         sync.RWMutex // guards rejections; nothing is called under it
	rejections map[string]*atomic.Uint64
}

// What reasons there are is in the code of the layers. If one of them says more than that, metrics must not grow with it.
const (
	maxReasons  = 32
	otherReason = "other"
)

// route is the one that there is. It is a label from the start, so that more of them break no dashboard.
const route = "default"

func newRequests() *requests {
	r := &requests{rejections: map[string]*atomic.Uint64{}}
	r.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "belfry_request_duration_seconds",
		Help:    "Time from a request's arrival until its answer began, by how it ended.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"route", "outcome"})
	for o := range outcomes {
		r.observer[o] = r.duration.WithLabelValues(route, o.String())
	}
	r.waits = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "belfry_buffer_wait_seconds",
		Help:    "How long requests waited for a place that got one.",
		Buckets: []float64{.0001, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"route"})
	r.waited = r.waits.WithLabelValues(route)
	return r
}

// note counts a request that is over.
func (r *requests) note(rec proxy.Record) {
	o := outcomeOf(rec)
	r.outcomes[o].Add(1)
	r.observer[o].Observe(rec.Latency.Seconds())
	if o.timed() {
		r.latency.Record(rec.Latency)
	}
	if o == rejected {
		r.rejection(rec.Reason).Add(1)
	}
}

// admit counts a request that has got its place.
func (r *requests) admit(waited time.Duration) { r.waited.Observe(waited.Seconds()) }

// rejection returns the counter of a reason.
func (r *requests) rejection(reason string) *atomic.Uint64 {
	r.mu.RLock()
	c := r.rejections[reason]
	r.mu.RUnlock()
	if c != nil {
		return c
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rejections[reason] == nil && len(r.rejections) >= maxReasons {
		reason = otherReason
	}
	if r.rejections[reason] == nil {
		r.rejections[reason] = new(atomic.Uint64)
	}
	return r.rejections[reason]
}

// rejected returns the counts by reason.
func (r *requests) rejected() map[string]uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make(map[string]uint64, len(r.rejections))
	for reason, n := range r.rejections {
		all[reason] = n.Load()
	}
	return all
}
