// Package admin shows what goes on in a running proxy: to an operator as a page, to programs as JSON, to Prometheus, and to whoever
// asks whether it is alive and ready.
//
// It is for those who may know: it names servers and their errors. So its address is one of the loopback interface unless it is told
// otherwise. Nothing can be changed through it.
package admin

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

// A Source is a proxy as it is seen from here. A [proxy.Server] is one.
type Source interface {
	// State is asked once a second, and by everybody who asks for JSON or metrics.
	State() proxy.State
	// Decisions is the latest choices of an endpoint, nil if they are not kept.
	Decisions() []balance.Decision
	// Draining turns true before anything else happens at the end.
	Draining() bool
	// OnRequest is given who is told of each request that is over, before there is any; OnAdmit who is told how long one has waited
	// for its place.
	OnRequest(func(proxy.Record))
	OnAdmit(func(waited time.Duration))
}

const (
	// tick is how often the page is told, and how far two points of its time line are apart.
	tick = time.Second
	// window is how many ticks the rates, shares and quantiles are over.
	window = 10
	// timeline is how many ticks there are to see.
	timeline = 300
)

// An Admin is the handler for the admin address. Make one with [New]; what follows may then be called concurrently.
type Admin struct {
	source   Source
	requests *requests
	meter    *meter
	stream   *stream
	mux      *http.ServeMux

	begin, end sync.Once
	running    sync.WaitGroup
	over       chan struct{} // closed by Close
}

var _ http.Handler = (*Admin)(nil)

// Attach has the proxy that opts are for show itself, and returns what is to be called when it has ended.
func Attach(opts *proxy.Options) (end func()) {
	var a *Admin // nil: it is told to show nothing
	opts.Admin = func(s *proxy.Server) http.Handler {
		a = New(s)
		return a
	}
	opts.Running = func() {
		if a != nil {
			a.Start()
		}
	}
	return func() {
		if a != nil {
			a.Close()
		}
	}
}

// New returns the handler for what source shows. It asks source for nothing until Start.
func New(source Source) *Admin {
	a := &Admin{
		source:   source,
		requests: newRequests(),
		mux:      http.NewServeMux(),
		over:     make(chan struct{}),
	}
	a.meter = newMeter(&a.requests.latency)
	a.stream = newStream()
	source.OnRequest(a.requests.note)
	source.OnAdmit(a.requests.admit)
	a.route()
	return a
}

func (a *Admin) route() {
	metrics := promhttp.HandlerFor(a.registry(), promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	a.mux.HandleFunc("GET /{$}", a.servePage)
	a.mux.HandleFunc("GET /api/state", a.serveState)
	a.mux.HandleFunc("GET /api/decisions", a.serveDecisions)
	a.mux.HandleFunc("GET /api/events", a.serveEvents)
	a.mux.HandleFunc("GET /healthz", serveHealth)
	a.mux.HandleFunc("GET /readyz", a.serveReady)
	a.mux.Handle("GET /metrics", metrics)
}

// ServeHTTP answers r, unless it came by a name that only a hostile page would use for this address.
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if rebound(r) {
		http.Error(w, "421 Misdirected Request: use an address, or localhost", http.StatusMisdirectedRequest)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// Start begins to observe, once a second, until Close.
func (a *Admin) Start() {
	a.begin.Do(func() {
		a.tick(time.Now())
		a.running.Go(a.watch)
	})
}

// Close ends all event streams, and what Start has begun. Other requests are still answered, with rates as they were.
func (a *Admin) Close() {
	a.begin.Do(func() {}) // too late for that
	a.end.Do(func() { close(a.over) })
	a.running.Wait()
}

func (a *Admin) watch() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			a.tick(now)
		case <-a.over:
			return
		}
	}
}

// tick ends an interval, and tells those who listen. What it costs them is paid only if there are any.
func (a *Admin) tick(now time.Time) {
	seen := a.observe(now)
	a.meter.tick(seen)
	if a.stream.heard() {
		a.stream.publish(event("state", update{State: a.snapshot(seen), Point: a.meter.latest()}))
	}
}

// observe reads everything once.
func (a *Admin) observe(now time.Time) observation {
	return observation{at: now, state: a.source.State(), outcomes: a.requests.outcomes.read()}
}

// now is what there is to see at the moment, with rates, shares and quantiles as of the last tick.
func (a *Admin) now() Snapshot { return a.snapshot(a.observe(time.Now())) }

// serveHealth says that the process lives.
func serveHealth(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

// serveReady says whether new requests should be sent here. That no server answers is no reason against it: all proxies
// in front of the same servers would say so at once, and then nobody is there to say 503 and for how long.
func (a *Admin) serveReady(w http.ResponseWriter, _ *http.Request) {
	if a.source.Draining() {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

func (a *Admin) serveState(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(encode(a.now()), '\n'))
}
