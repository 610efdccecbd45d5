package belfryhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"
)

// writer returns the ResponseWriter for handlers and layers. A handler may ask by type assertion what it can do, so it has the
// methods that a server of its version has.
func (g *guard) writer() http.ResponseWriter {
	if g.http1 {
		return writer1{g}
	}
	return writer2{g}
}

// A writer1 is the ResponseWriter of an HTTP/1 request.
type writer1 struct{ *guard }

// A writer2 is the ResponseWriter of an HTTP/2 request.
type writer2 struct{ *guard }

var (
	_ io.StringWriter = (*guard)(nil)
	_ http.Flusher    = (*guard)(nil)
	_ io.ReaderFrom   = writer1{}
	_ http.Hijacker   = writer1{}
	_ http.Pusher     = writer2{}
)

// Header returns the handler's header.
func (g *guard) Header() http.Header { return g.header }

// WriteHeader answers, or informs.
func (g *guard) WriteHeader(status int) {
	if status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
		if g.claim(status) {
			g.w.WriteHeader(status)
		}
		return
	}
	if g.borrow() {
		defer g.giveBack()
		g.inform(status)
	}
}

// Write answers.
func (g *guard) Write(p []byte) (int, error) {
	if !g.claim(http.StatusOK) {
		return 0, http.ErrHandlerTimeout
	}
	return g.w.Write(p)
}

// WriteString answers.
func (g *guard) WriteString(s string) (int, error) {
	if !g.claim(http.StatusOK) {
		return 0, http.ErrHandlerTimeout
	}
	return io.WriteString(g.w, s)
}

// Flush answers.
func (g *guard) Flush() { _ = g.FlushError() }

// FlushError answers.
func (g *guard) FlushError() error {
	if !g.claim(http.StatusOK) {
		return http.ErrHandlerTimeout
	}
	return http.NewResponseController(g.w).Flush()
}

// SetReadDeadline is for reading the request, the time for which ends with a 504.
func (g *guard) SetReadDeadline(at time.Time) error {
	if g.isTimedOut() {
		return http.ErrHandlerTimeout
	}
	return http.NewResponseController(g.w).SetReadDeadline(at)
}

// SetWriteDeadline is for writing the answer.
func (g *guard) SetWriteDeadline(at time.Time) error {
	if g.isTimedOut() {
		return http.ErrHandlerTimeout
	}
	return http.NewResponseController(g.w).SetWriteDeadline(at)
}

// EnableFullDuplex says that the request is read while the answer is written.
func (g *guard) EnableFullDuplex() error {
	if !g.borrow() {
		return http.ErrHandlerTimeout
	}
	defer g.giveBack()
	return http.NewResponseController(g.w).EnableFullDuplex()
}

// Hijack takes the connection over, and with it the exchange out of all deadlines.
func (w writer1) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !w.borrow() {
		return nil, nil, http.ErrHandlerTimeout
	}
	defer w.giveBack()
	conn, rw, err := http.NewResponseController(w.w).Hijack()
	if err == nil {
		w.take()
	}
	return conn, rw, err
}

// sniffed is how much of a response net/http looks at before it sends a file without looking.
const sniffed = 512

// ReadFrom answers as soon as there is something to answer with, and leaves the rest to the server, which may send a
// file without copying it.
func (w writer1) ReadFrom(src io.Reader) (n int64, err error) {
	if !w.written() {
		if n, err = w.copySome(src); err != nil {
			if err == io.EOF { //nolint:errorlint // readers return it as it is
				err = nil
			}
			return n, err
		}
	}
	if w.isTimedOut() {
		return n, http.ErrHandlerTimeout
	}
	rest, err := io.Copy(w.w, src)
	return n + rest, err
}

// copySome reads until there is something, and writes that.
func (w writer1) copySome(src io.Reader) (int64, error) {
	buf := make([]byte, sniffed)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			written, failed := w.Write(buf[:n])
			if failed != nil {
				err = failed
			}
			return int64(written), err
		}
		if err != nil {
			return 0, err
		}
	}
}

// Push has nothing to do with the answer.
func (w writer2) Push(target string, opts *http.PushOptions) error {
	if w.isTimedOut() {
		return http.ErrHandlerTimeout
	}
	if p, ok := w.w.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}
