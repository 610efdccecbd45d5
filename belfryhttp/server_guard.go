package belfryhttp

import (
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/timeout"
)

const contentLength = "Content-Length"

// errTimedOut is the error of a call whose answer came from the deadline.
var errTimedOut = fmt.Errorf("%w: %w", http.ErrHandlerTimeout, timeout.Err)

// A phase says who may use the server's ResponseWriter.
type phase uint8

const (
	idle     phase = iota // layers; the handler does not run, so a deadline ends the wait, and does not answer
	running               // the handler, until a deadline takes it
	busy                  // the handler uses it without answering; a deadline must wait for that
	answered              // the handler or a layer, for good
	timedOut              // the deadline, for good
)

// A guard shares the server's ResponseWriter between a handler, in whose goroutine the layers run too, and the deadline,
// which comes in a goroutine of its own. Whoever answers first has it alone from then on. So nobody waits for
// anybody, and a handler that hangs in a Write to a slow client holds up nothing but itself.
type guard struct {
	w       http.ResponseWriter // the server's
	http1   bool
	hasBody bool
	header  http.Header // for the handler: the server's own, or a copy if a deadline may need that one meanwhile
	copied  bool
	head    func(http.Header) // has the last word on the header of the answer; or nil
	before  http.Header       // the server's, before an informational response put the handler's into it

	// mu guards what follows, and is never held while w is used. The phase goes from idle to running and back, and from running
	// to busy and back; from each of them to answered; and from running and busy to timedOut.
	mu       sync.Mutex
	phase    phase
	late     bool // the deadline has passed
	returned bool // the handler has
	hijacked bool
	status   int // of the answer
}

func newGuard(w http.ResponseWriter, r *http.Request, bounded bool) *guard {
	g := &guard{w: w, http1: r.ProtoMajor < 2, hasBody: r.ContentLength != 0, header: w.Header(), copied: bounded}
	if bounded {
		g.header = g.header.Clone()
	}
	return g
}

// begin lets the handler begin, unless the deadline has passed by now.
func (g *guard) begin() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.late {
		return &belfry.Rejection{Layer: "timeout", Reason: "deadline passed before the call", Err: timeout.Err}
	}
	if g.phase == idle {
		g.phase = running
	}
	return nil
}

// end is called when the handler has returned.
func (g *guard) end() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase == timedOut {
		return errTimedOut
	}
	if g.phase != answered {
		g.phase = idle
	}
	g.returned = true
	return nil
}

// claim makes the caller the one who answers, with status if nobody has begun. It fails if the deadline has answered.
func (g *guard) claim(status int) bool {
	g.mu.Lock()
	is := g.phase
	if is != timedOut {
		g.phase = answered
	}
	if is < answered {
		g.status = status
	}
	g.mu.Unlock()
	if is < answered {
		g.publish()
	}
	return is != timedOut
}

// borrow lets the caller use w without answering, until giveBack. It fails if the deadline has answered.
func (g *guard) borrow() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase == running {
		g.phase = busy
	}
	return g.phase != timedOut
}

// giveBack ends a borrow. A deadline that came meanwhile is made up for.
func (g *guard) giveBack() {
	g.mu.Lock()
	expired := g.phase == busy && g.late
	switch {
	case expired:
		g.phase, g.status = timedOut, http.StatusGatewayTimeout
	case g.phase == busy:
		g.phase = running
	}
	g.mu.Unlock()
	if expired {
		g.timeOut()
	}
}

// expire is called at the deadline. It reports whether it is for the caller to answer, and whether the exchange has no
// deadline any more.
func (g *guard) expire() (mine, exempt bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hijacked {
		return false, true
	}
	g.late = true
	if g.phase == running {
		g.phase, g.status = timedOut, http.StatusGatewayTimeout
		return true, false
	}
	return false, false
}

// take makes the connection the handler's.
func (g *guard) take() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.phase != answered {
		g.status = http.StatusSwitchingProtocols
	}
	g.phase, g.hijacked = answered, true
}

func (g *guard) isHijacked() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hijacked
}

func (g *guard) isTimedOut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.phase == timedOut
}

// written reports whether somebody has answered.
func (g *guard) written() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.phase >= answered
}

func (g *guard) result() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.status == 0 && g.returned {
		return http.StatusOK
	}
	return g.status
}

// timeOut answers for the deadline, at once and whole: the handler may run for long. What the handler has put into its header
// is not part of that.
func (g *guard) timeOut() {
	h := g.w.Header()
	if g.before != nil {
		replace(h, g.before)
	}
	a := &answer{header: h}
	WriteError(a, timeout.Err)
	h.Set(contentLength, strconv.Itoa(len(a.body)))
	if g.http1 {
		// It also keeps net/http from reading the rest of the request first.
		h.Set("Connection", "close")
	}
	g.w.WriteHeader(a.status)
	_, _ = g.w.Write(a.body)
	rc := http.NewResponseController(g.w)
	_ = rc.Flush()
	if g.hasBody {
		_ = rc.SetReadDeadline(time.Now())
	}
}

// An answer is a response that is put together before it is written.
type answer struct {
	header http.Header
	status int
	body   []byte
}

func (a *answer) Header() http.Header    { return a.header }
func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) Write(p []byte) (int, error) {
	a.body = append(a.body, p...)
	return len(p), nil
}

// publish makes the handler's header the server's.
func (g *guard) publish() {
	if g.copied {
		replace(g.w.Header(), g.header)
	}
	if g.head != nil {
		g.head(g.w.Header())
	}
}

// inform sends an informational response, with the handler's header.
func (g *guard) inform(status int) {
	if g.copied {
		h := g.w.Header()
		if g.before == nil {
			g.before = h.Clone()
		}
		replace(h, g.header)
		if _, ok := h[contentLength]; !ok && !g.http1 {
			// If the client leaves meanwhile, net/http goes on reading this map after WriteHeader has returned, while it is
			// changed for the next response. It reads a copy if there is something in it that it must not send.
			h.Set(contentLength, "0")
		}
	}
	g.w.WriteHeader(status)
}

// finish is called when the call is over, however it was answered.
func (g *guard) finish() {
	g.mu.Lock()
	is := g.phase
	g.mu.Unlock()
	switch {
	case is == timedOut:
	case is == answered && g.copied:
		g.publishTrailers()
	case is == answered:
	default:
		g.publish()
	}
}

// publishTrailers makes the trailers the server's, and nothing else: somebody further out, who compresses for example, may
// have changed the header since.
func (g *guard) publishTrailers() {
	h := g.w.Header()
	for name, values := range g.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			h[name] = values
		}
	}
	for _, list := range g.header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name))
			if values, ok := g.header[name]; ok {
				h[name] = values
			}
		}
	}
}

// replace makes the fields of dst those of src.
func replace(dst, src http.Header) {
	clear(dst)
	maps.Copy(dst, src)
}
