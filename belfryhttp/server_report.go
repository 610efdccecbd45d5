package belfryhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-go/belfry/load"
)

// ReportConfig says how [ReportLoad] reports. The zero value is ready to use.
type ReportConfig struct {
	// Load is how busy the server is, in place of how many requests it has in flight: a number like that, the same for all servers of a
	// fleet, at least 0. It is asked for every answer, concurrently; what is not valid is not sent. A [limit.Limiter] shared by several
	// handlers, for example, knows what all of them have in flight.
	Load func() float64
	// Gauge is what measures, to be shared by several handlers of one server. Nil means one of its own.
	Gauge *load.Gauge
	// ProbePath is where probes are answered. Empty means DefaultProbePath.
	ProbePath string
	// NoProbes leaves probes to the handler.
	NoProbes bool
}

// Validate says what is wrong with the ReportConfig.
func (c ReportConfig) Validate() error {
	switch {
	case c.ProbePath != "" && !strings.HasPrefix(c.ProbePath, "/"):
		return fmt.Errorf("belfryhttp: ProbePath must begin with a slash, got %q", c.ProbePath)
	case c.NoProbes && c.ProbePath != "":
		return errors.New("belfryhttp: ProbePath must be empty with NoProbes")
	}
	return nil
}

// ReportLoad returns h, whose answers say how busy the server is, by [LoadHeader], as it is when their header is written; and which answers
// probes at once, with 204 and also the latency that a request has when so many are in flight, by [LoadLatencyHeader]. Clients that
// balance by [load.Reported] or [load.Probing] listen. What h has put into these headers itself is kept: a proxy that passes on what a
// server behind it said.
//
// It belongs outside of a [ServerStack], so that requests which wait there count. Requests that are answered with 500 or above, panic or
// take over the connection say nothing about latency. The ResponseWriter that h gets does what the server's own does, but has no Unwrap.
//
// It takes at most one ReportConfig, and panics if that is not valid.
func ReportLoad(h http.Handler, cfg ...ReportConfig) http.Handler {
	var c ReportConfig
	switch len(cfg) {
	case 0:
	case 1:
		c = cfg[0]
	default:
		panic(fmt.Sprintf("belfryhttp: at most one ReportConfig, got %d", len(cfg)))
	}
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.Gauge == nil {
		c.Gauge = &load.Gauge{}
	}
	if c.ProbePath == "" && !c.NoProbes {
		c.ProbePath = DefaultProbePath
	}
	return &reportingHandler{h, c}
}

// A reportingHandler reports load.
type reportingHandler struct {
	inner http.Handler
	cfg   ReportConfig
}

func (h *reportingHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == h.cfg.ProbePath && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		h.answer(w)
		return
	}
	before, began := h.cfg.Gauge.Begin(), time.Now()
	g := newGuard(w, r, false)
	g.head = h.report
	returned := false
	defer func() {
		if returned && !g.isHijacked() && g.result() < 500 {
			h.cfg.Gauge.End(before, time.Since(began))
		} else {
			h.cfg.Gauge.Drop()
		}
	}()
	h.inner.ServeHTTP(g.writer(), r)
	_ = g.end()
	g.finish()
	returned = true
}

// report says in an answer's header how busy the server is.
func (h *reportingHandler) report(header http.Header) {
	if _, ok := header[LoadHeader]; ok {
		return
	}
	r := load.Report{InFlight: h.load(float64(h.cfg.Gauge.InFlight()))}
	if r.Valid() {
		header[LoadHeader] = []string{decimal(r.InFlight)}
	}
}

// answer answers a probe.
func (h *reportingHandler) answer(w http.ResponseWriter) {
	r := h.cfg.Gauge.Report()
	r.InFlight = h.load(r.InFlight)
	header := w.Header()
	header["Cache-Control"] = []string{"no-store"}
	if r.Valid() {
		header[LoadHeader] = []string{decimal(r.InFlight)}
		if r.Latency > 0 {
			header[LoadLatencyHeader] = []string{decimal(float64(r.Latency) / float64(time.Millisecond))}
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h *reportingHandler) load(inFlight float64) float64 {
	if h.cfg.Load == nil {
		return inFlight
	}
	return h.cfg.Load()
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
