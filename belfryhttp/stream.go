package belfryhttp

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// until makes done be called when res has ended. This is Until of the Semantics.
//
// However many layers ask, the body is wrapped once.
func until(res *http.Response, done func()) *http.Response {
	switch body := res.Body.(type) {
	case nil:
		done()
	case ended:
		body.onEnd(done)
	default:
		if body == http.NoBody {
			done()
			break
		}
		res.Body = wrap(body, done)
	}
	return res
}

// An ended is a body that tells when it has ended.
type ended interface{ onEnd(done func()) }

func wrap(body io.ReadCloser, done func()) io.ReadCloser {
	if w, ok := body.(io.Writer); ok {
		d := &duplex{w: w}
		d.body, d.done = body, []func(){done}
		return d
	}
	s := &stream{body: body}
	s.first[0] = done
	s.done = s.first[:1]
	return s
}

// A stream is the body of a response, which has ended when reading it has, well or badly, or when it is closed.
type stream struct {
	body   io.ReadCloser
	closed atomic.Bool

	// mu guards what follows; it is not held while the body or a done is called.
	mu    sync.Mutex
	over  bool
	done  []func()
	first [4]func() // room for a few, so that they cost nothing
}

// Read reads the body.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.body.Read(b)
	if err != nil {
		s.end()
	}
	return n, err
}

// Close closes the body, once.
func (s *stream) Close() error {
	defer s.end()
	if s.closed.Swap(true) {
		return nil
	}
	return s.body.Close()
}

func (s *stream) onEnd(done func()) {
	s.mu.Lock()
	over := s.over
	if !over {
		s.done = append(s.done, done)
	}
	s.mu.Unlock()
	if over {
		done()
	}
}

// end calls what is to be called at the end, innermost layer first, each exactly once.
func (s *stream) end() {
	s.mu.Lock()
	done := s.done
	s.over, s.done = true, nil
	s.mu.Unlock()
	callAll(done)
}

// callAll calls all of done, also if one of them panics.
func callAll(done []func()) {
	if len(done) == 0 {
		return
	}
	defer callAll(done[1:])
	done[0]()
}

// A duplex is the body of a 101 response: the connection itself. A peer that sends no more may still be written to, so
// it has ended when it is closed, not before.
type duplex struct {
	stream
	w io.Writer
}

// Read reads from the connection.
func (d *duplex) Read(b []byte) (int, error) { return d.body.Read(b) }

// Write writes to the connection.
func (d *duplex) Write(b []byte) (int, error) { return d.w.Write(b) }

// CloseWrite closes the writing side, if the connection can do that.
func (d *duplex) CloseWrite() error {
	if c, ok := d.body.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return fmt.Errorf("belfryhttp: CloseWrite: %w", http.ErrNotSupported)
}

// discard reads what is left of res, within bounds, and closes it. This is Discard of the Semantics.
func (c *Config) discard(res *http.Response) {
	body := res.Body
	if body == nil || body == http.NoBody {
		return
	}
	defer body.Close()
	if _, upgraded := body.(io.Writer); upgraded || c.DrainBytes < 0 || res.ContentLength > c.DrainBytes {
		return
	}
	// Closing is what ends a Read that hangs, so it cannot wait for the Read.
	closed := make(chan struct{})
	var panicked any
	timer := time.AfterFunc(c.DrainTime, func() {
		defer close(closed)
		defer func() { panicked = recover() }()
		body.Close()
	})
	_, _ = io.CopyN(io.Discard, body, c.DrainBytes+1) // one more, to see the end of a body that just fits
	if timer.Stop() {
		return
	}
	if <-closed; panicked != nil {
		panic(panicked)
	}
}
