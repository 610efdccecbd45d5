package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry/belfryhttp"
)

// A handler is the reverse proxy over a transport, and counts what goes through.
type handler struct {
	proxy  *httputil.ReverseProxy
	log    *slog.Logger
	failed *failureLog
	over   func(Record) // told of each request that is over
	ways   atomic.Pointer[ways]

	requests atomic.Uint64
	inFlight atomic.Int64
	answered [6]atomic.Uint64
	// none is signalled when the number in flight falls to zero, for whoever drains.
	none chan struct{}
}

// ways are what the handler itself reads of a Config.
type ways struct {
	trusted forwarders
	access  bool
	stall   time.Duration
}

// set changes what the handler reads of a Config, for requests that come from now on.
func (h *handler) set(cfg Config) {
	h.ways.Store(&ways{trusted: cfg.TrustedForwarders, access: cfg.AccessLog, stall: cfg.Client.StallTimeout})
}

func newHandler(transport http.RoundTripper, cfg Config, log *slog.Logger, over func(Record)) *handler {
	h := &handler{log: log, failed: newFailureLog(log), over: over, none: make(chan struct{}, 1)}
	h.set(cfg)
	h.proxy = &httputil.ReverseProxy{
		Rewrite:   h.rewrite,
		Transport: upgradeGuard{transport},
		// What has no length or is an event stream is flushed at once anyway. An answer with a length may trickle too,
		// and whoever waits for its first part cannot tell.
		FlushInterval: -1,
		BufferPool:    newBufferPool(),
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelDebug), // answers that break off: the handler tells of them
		ErrorHandler:  h.fail,
	}
	return h
}

// rewrite leaves the request as the client sent it, but for who it came from. The endpoint is chosen further in, so there is no
// host to set here.
func (h *handler) rewrite(r *httputil.ProxyRequest) {
	h.ways.Load().trusted.forward(r)
	r.Out.URL.Scheme = "http"
	r.Out.URL.Host = "endpoint.invalid"
	// Nobody here reads the query, so nobody here may judge it.
	r.Out.URL.RawQuery = r.In.URL.RawQuery
}

// ServeHTTP passes r on. An answer that breaks off ends in a panic with [http.ErrAbortHandler], which the server knows.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.inFlight.Add(1)
	defer h.leave()
	h.requests.Add(1)
	now := h.ways.Load()
	x := &exchange{
		ResponseWriter: w, control: http.NewResponseController(w), began: time.Now(), stall: now.stall,
		record: Record{Method: r.Method, Host: r.Host, Path: r.URL.Path},
	}
	whole := false
	defer func() { h.finish(r, x, whole, now.access) }()
	h.proxy.ServeHTTP(x, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
	whole = true
}

// finish counts a request that is over, and tells of it.
func (h *handler) finish(r *http.Request, x *exchange, whole, access bool) {
	rec := &x.record
	rec.Took = time.Since(x.began)
	if !whole {
		rec.Reason = h.failed.broken(r, rec.Endpoint)
	}
	if class := rec.Status / 100; class > 0 && class < len(h.answered) {
		h.answered[class].Add(1)
	}
	h.over(*rec)
	if access {
		h.log.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("method", rec.Method), slog.String("host", rec.Host), slog.String("path", rec.Path),
			slog.String("proto", r.Proto), slog.String("client", r.RemoteAddr),
			slog.Int("status", rec.Status), slog.Int64("bytes", rec.Bytes), slog.Duration("latency", rec.Latency), slog.Duration("took", rec.Took),
			slog.String("endpoint", rec.Endpoint), slog.Int("attempts", rec.Attempts), slog.String("reason", rec.Reason))
	}
}

func (h *handler) leave() {
	if h.inFlight.Add(-1) == 0 {
		select {
		case h.none <- struct{}{}:
		default:
		}
	}
}

// idle waits until nothing is in flight, and reports whether that came about before ctx was done. Connections that were
// upgraded count, which [http.Server.Shutdown] does not know of.
func (h *handler) idle(ctx context.Context) bool {
	for h.inFlight.Load() > 0 {
		select {
		case <-h.none:
		case <-ctx.Done():
			return h.inFlight.Load() == 0
		}
	}
	return true
}

// fail answers a request for which there is no answer.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	reason := h.failed.note(r, err)
	if x, ok := w.(*exchange); ok {
		x.record.Reason = reason
	}
	belfryhttp.WriteError(w, err)
}

// stats returns what came in, and how it was answered.
func (h *handler) stats() RequestStats {
	s := RequestStats{InFlight: h.inFlight.Load(), Total: h.requests.Load()}
	for i := range h.answered {
		s.Answered[i] = h.answered[i].Load()
	}
	s.Failed, s.ClientsGone = h.failed.counts()
	s.Reasons = h.failed.reasonCounts()
	return s
}

// An upgradeGuard refuses answers that switch to another protocol than was asked for. The reverse proxy refuses them too, but
// leaves the connection open, and with it the places in the limits.
type upgradeGuard struct{ inner http.RoundTripper }

var errUpgrade = errors.New("proxy: the server switched protocols in another way than was asked for")

func (g upgradeGuard) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := g.inner.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		return res, err
	}
	asked, got := req.Header.Get("Upgrade"), res.Header.Get("Upgrade")
	if asked == "" || !strings.EqualFold(asked, got) {
		res.Body.Close()
		return nil, fmt.Errorf("%w: %q for %q", errUpgrade, got, asked)
	}
	return res, nil
}

// A bufferPool lends the buffers through which answers are copied.
type bufferPool struct{ pool sync.Pool }

const bufferSize = 32 << 10

func newBufferPool() *bufferPool {
	return &bufferPool{sync.Pool{New: func() any { return new([bufferSize]byte) }}}
}

func (p *bufferPool) Get() []byte { return p.pool.Get().(*[bufferSize]byte)[:] }

func (p *bufferPool) Put(b []byte) { p.pool.Put((*[bufferSize]byte)(b)) }
