package belfryhttp

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func response(body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, ContentLength: -1}
}

func TestUntilIsCalledOnceWhateverEndsTheBody(t *testing.T) {
	broken := errors.New("connection reset")
	for name, end := range map[string]func(body io.ReadCloser){
		"read to the end":              func(b io.ReadCloser) { _, _ = io.ReadAll(b) },
		"closed":                       func(b io.ReadCloser) { b.Close() },
		"read to the end and closed":   func(b io.ReadCloser) { _, _ = io.ReadAll(b); b.Close(); b.Close() },
		"read on after the end":        func(b io.ReadCloser) { _, _ = io.ReadAll(b); _, _ = b.Read(make([]byte, 1)) },
		"closed by several goroutines": func(b io.ReadCloser) { many(8, func() { b.Close() }) },
	} {
		for _, source := range []io.Reader{strings.NewReader("hello"), errReader{broken}} {
			src := &plainBody{Reader: source}
			calls := make([]int, 6)
			res := response(src)
			for i := range calls {
				res = until(res, func() { calls[i]++ })
			}
			if sum(calls) != 0 {
				t.Fatalf("%s: over before it ended", name)
			}
			end(res.Body)
			if !slices.Equal(calls, []int{1, 1, 1, 1, 1, 1}) {
				t.Errorf("%s: done called %v times", name, calls)
			}
			if src.closed > 1 {
				t.Errorf("%s: body closed %d times", name, src.closed)
			}
			late := 0
			until(res, func() { late++ })
			if late != 1 {
				t.Errorf("%s: a done that comes late was called %d times", name, late)
			}
		}
	}
}

type plainBody struct {
	io.Reader
	closed int
}

func (s *plainBody) Close() error { s.closed++; return nil }

func sum(ns []int) (total int) {
	for _, n := range ns {
		total += n
	}
	return total
}

func many(n int, f func()) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(f)
	}
	wg.Wait()
}

func TestUntilWrapsOnce(t *testing.T) {
	res := until(response(io.NopCloser(strings.NewReader("hello"))), func() {})
	body := res.Body
	for range 5 {
		until(res, func() {})
	}
	if res.Body != body {
		t.Error("wrapped again")
	}
}

func TestUntilCallsInnerLayersFirstAndAllOfThem(t *testing.T) {
	var order []int
	res := response(io.NopCloser(strings.NewReader("")))
	for i := range 4 {
		until(res, func() {
			order = append(order, i)
			if i == 1 {
				panic("a layer is broken")
			}
		})
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		res.Body.Close()
	}()
	if !slices.Equal(order, []int{0, 1, 2, 3}) {
		t.Errorf("called %v", order)
	}
}

func TestUntilOfAResponseWithoutBody(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		done := 0
		res := until(response(body), func() { done++ })
		if done != 1 || res.Body != body {
			t.Errorf("body %v: done %d times, now %v", body, done, res.Body)
		}
	}
}

// A pipe is a connection: what a 101 has for a body.
type pipe struct {
	io.Reader
	io.Writer
	closed, halfClosed int
}

func (p *pipe) Close() error      { p.closed++; return nil }
func (p *pipe) CloseWrite() error { p.halfClosed++; return nil }

func TestUntilOfAnUpgradedConnection(t *testing.T) {
	var sent strings.Builder
	conn := &pipe{Reader: strings.NewReader("hello"), Writer: &sent}
	done := 0
	res := response(conn)
	until(res, func() { done++ })
	until(res, func() { done++ })
	rwc, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatal("the body cannot be written to any more")
	}
	wantRead(t, rwc, "hello")
	_, _ = io.WriteString(rwc, "still here")
	if done != 0 || sent.String() != "still here" {
		t.Errorf("after the peer's end: done %d times, sent %q", done, sent.String())
	}
	if err := rwc.(interface{ CloseWrite() error }).CloseWrite(); err != nil || conn.halfClosed != 1 {
		t.Errorf("CloseWrite: %v", err)
	}
	rwc.Close()
	if done != 2 || conn.closed != 1 {
		t.Errorf("done %d times, closed %d times", done, conn.closed)
	}

	plain := struct {
		io.Reader
		io.Writer
		io.Closer
	}{conn, conn, conn}
	body := until(response(plain), func() {}).Body
	if err := body.(interface{ CloseWrite() error }).CloseWrite(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("CloseWrite of a connection without it: %v", err)
	}
}

// A counter is a body of so many bytes that counts how many were read.
type counter struct {
	left, read int
	eof        bool
	closed     int
}

func (c *counter) Read(b []byte) (int, error) {
	if c.left == 0 {
		c.eof = true
		return 0, io.EOF
	}
	n := min(len(b), c.left)
	c.left -= n
	c.read += n
	return n, nil
}

func (c *counter) Close() error { c.closed++; return nil }

func TestDiscardReadsWithinBounds(t *testing.T) {
	for _, c := range []struct {
		name          string
		cfg           Config
		length, known int
		eof           bool
		atMost        int
	}{
		{"short", Config{}, 100, 100, true, 100},
		{"just fits", Config{}, 64 << 10, -1, true, 64 << 10},
		{"too long, and says so", Config{}, 64<<10 + 1, 64<<10 + 1, false, 0},
		{"too long without saying", Config{}, 1 << 20, -1, false, 64<<10 + 1},
		{"own bound", Config{DrainBytes: 10}, 11, -1, false, 11},
		{"no draining", Config{DrainBytes: -1}, 1, 1, false, 0},
	} {
		cfg := mustOnly([]Config{c.cfg})
		body, done := &counter{left: c.length}, 0
		res := response(body)
		res.ContentLength = int64(c.known)
		cfg.discard(until(res, func() { done++ }))
		if body.eof != c.eof || body.read > c.atMost || body.closed != 1 || done != 1 {
			t.Errorf("%s: end seen %v, %d bytes read, closed %d times, done %d times", c.name, body.eof, body.read, body.closed, done)
		}
	}
}

func TestDiscardDoesNotWaitForAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		defer w.Close()
		cfg, done := mustOnly(nil), 0
		res := until(response(r), func() { done++ })
		start := time.Now()
		cfg.discard(res)
		if took := time.Since(start); took != 50*time.Millisecond || done != 1 {
			t.Errorf("took %v, done %d times", took, done)
		}
	})
}

func TestDiscardLeavesNoTimerBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := mustOnly([]Config{{DrainTime: time.Hour}})
		body := &counter{left: 10}
		cfg.discard(response(body))
		time.Sleep(2 * time.Hour)
		if body.closed != 1 {
			t.Errorf("closed %d times", body.closed)
		}
		cfg.discard(response(nil))
		cfg.discard(response(http.NoBody))
	})
}

func TestDiscardOfAnUpgradedConnectionJustCloses(t *testing.T) {
	cfg := mustOnly(nil)
	conn := &pipe{Reader: panicReader{}}
	cfg.discard(until(response(conn), func() {}))
	if conn.closed != 1 {
		t.Errorf("closed %d times", conn.closed)
	}
}

func TestDiscardPassesAPanicOnToItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := mustOnly(nil)
		r, w := io.Pipe()
		defer func() {
			if recover() != "close" {
				t.Error("the panic was lost")
			}
		}()
		cfg.discard(response(panicCloser{r, w}))
	})
}

type panicCloser struct {
	io.Reader
	w *io.PipeWriter
}

func (p panicCloser) Close() error { p.w.Close(); panic("close") }
