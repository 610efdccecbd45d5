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

	"github.com/belfry-go/belfry/belfryhttp"
)

// A handler is the reverse proxy over a transport, and counts what goes through.
type handler struct {
	proxy  *httputil.ReverseProxy
	failed *failureLog

	requests atomic.Uint64
	inFlight atomic.Int64
	// none is signalled when the number in flight falls to zero, for whoever drains.
	none chan struct{}
}

func newHandler(transport http.RoundTripper, log *slog.Logger) *handler {
	h := &handler{failed: newFailureLog(log), none: make(chan struct{}, 1)}
	h.proxy = &httputil.ReverseProxy{
		Rewrite:   rewrite,
		Transport: upgradeGuard{transport},
		// What has no length or is an event stream is flushed at once anyway. An answer with a length may trickle too,
		// and whoever waits for its first part cannot tell.
		FlushInterval: -1,
		BufferPool:    newBufferPool(),
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandler:  h.fail,
	}
	return h
}

// rewrite leaves the request as the client sent it, but for who it came from. The endpoint is chosen further in, so there is no
// host to set here.
func rewrite(r *httputil.ProxyRequest) {
	r.SetXForwarded()
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
	h.proxy.ServeHTTP(w, r)
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
	h.failed.note(r, err)
	belfryhttp.WriteError(w, err)
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
