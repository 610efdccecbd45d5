package belfryhttp

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

var (
	errSentOnce = errors.New("belfryhttp: request body cannot be sent a second time")
	errPanicked = errors.New("belfryhttp: reading the request body panicked")
)

// An upload is a request body for several attempts, each of which reads it through a [part] of its own.
//
// Closing a part does not close the body. That happens once, when no part is open and the owner has let go. The owner
// is who must see to it that the body is closed: the Tripper, or the leaf if a request came without one.
//
// What is read may be recorded for later parts. A part may still be reading when the next one begins, because
// transports read in goroutines of their own, also after their RoundTrip has returned. So bytes go to the record
// whoever reads them, and parts take turns.
type upload struct {
	open  func() (io.ReadCloser, error) // makes src when it is first read; nil if src is there
	limit int64                         // of the record; 0 means that there is none
	once  func()                        // told when the body has become one that is sent once; may be nil

	// mu guards what follows; it is not held while src is opened, read or closed. Only the goroutine that set reading
	// touches src until filled. While lost is false, record is the first off bytes. Whoever sets closed closes src.
	mu      sync.Mutex
	src     io.ReadCloser
	owned   bool
	parts   int // open ones
	off     int64
	record  []byte
	lost    bool
	err     error // what src ended with, io.EOF mostly
	reading bool
	turn    chan struct{} // closed when waiting parts may look again; nil if none waits
	closed  bool
}

// A part is one attempt's view of an upload. Its methods may be called concurrently.
type part struct {
	up     *upload
	pos    int64
	open   bool // counts in up.parts
	began  bool // something was, or is being, read through it
	closed bool
}

// attach returns a new part that goes on where p stands, and keeps the body open until it is closed.
func (p *part) attach() (*part, error) {
	u := p.up
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || (u.lost && p.pos < u.off) {
		return nil, errSentOnce
	}
	u.parts++
	return &part{up: u, pos: p.pos, open: true}, nil
}

// Read reads the record, and the body where the record ends.
func (p *part) Read(b []byte) (int, error) {
	for {
		n, wait, err := p.tryRead(b)
		if wait == nil {
			return n, err
		}
		<-wait
	}
}

// tryRead reads, or returns what to wait for while another part is reading.
func (p *part) tryRead(b []byte) (n int, wait <-chan struct{}, err error) {
	u := p.up
	u.mu.Lock()
	p.began = p.began || !p.closed
	switch {
	case p.closed:
		err = http.ErrBodyReadAfterClose
	case p.pos < u.off && u.lost:
		err = errSentOnce
	case p.pos < u.off:
		n = copy(b, u.record[p.pos:])
		p.pos += int64(n)
	case u.err != nil:
		err = u.err
	case u.closed:
		err = http.ErrBodyReadAfterClose
	case u.reading:
		if u.turn == nil {
			u.turn = make(chan struct{})
		}
		wait = u.turn
	default:
		u.reading = true
		u.mu.Unlock()
		n, err = p.fill(b)
		return n, nil, err
	}
	u.mu.Unlock()
	return n, wait, err
}

// fill reads src; p has the turn.
func (p *part) fill(b []byte) (n int, err error) {
	err = errPanicked // unless what follows returns
	defer func() { p.filled(b[:n], err) }()
	src := p.up.src
	if src == nil {
		opened, failure := p.up.open()
		if failure != nil {
			return 0, failure
		}
		src = p.up.opened(opened)
	}
	return src.Read(b)
}

// opened stores src, and closes it at once if everybody has left meanwhile.
func (u *upload) opened(src io.ReadCloser) io.ReadCloser {
	u.mu.Lock()
	u.src = src
	closed := u.closed
	u.mu.Unlock()
	if closed {
		src.Close()
	}
	return src
}

// filled accounts for what p has read, and passes the turn on.
func (p *part) filled(b []byte, err error) {
	u := p.up
	u.mu.Lock()
	u.off += int64(len(b))
	p.pos += int64(len(b))
	u.err = err
	lost := false
	switch {
	case u.lost || len(b) == 0:
	case u.off > u.limit:
		lost, u.lost, u.record = true, true, nil
	default:
		u.record = append(u.record, b...)
	}
	u.reading = false
	u.wake()
	_ = u.closeUnlock(false)
	if lost && u.once != nil {
		u.once()
	}
}

// Close ends the part. A second Close does nothing.
func (p *part) Close() error {
	u := p.up
	u.mu.Lock()
	p.closed = true
	if p.open {
		p.open = false
		u.parts--
	}
	u.wake()
	return u.closeUnlock(true)
}

// release is the owner's letting go: there will be no more attempts.
func (u *upload) release() {
	u.mu.Lock()
	u.owned = false
	_ = u.closeUnlock(true)
}

// abandon is the owner's letting go of a body that somebody else is to close. It reports false, and does
// nothing, if that one would find it read.
func (u *upload) abandon() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.off > 0 || u.reading || u.err != nil {
		return false
	}
	u.closed = true
	return true
}

// closeUnlock unlocks mu, and closes the body if that is due: when the last has left, or when there is nothing to read any
// more.
func (u *upload) closeUnlock(left bool) error {
	due := !u.owned && !u.closed && (left && u.parts == 0 || u.err != nil)
	u.closed = u.closed || due
	src := u.src
	u.mu.Unlock()
	if !due || src == nil {
		return nil
	}
	return src.Close()
}

// wake lets the waiting parts look again. u.mu is held.
func (u *upload) wake() {
	if u.turn != nil {
		close(u.turn)
		u.turn = nil
	}
}

// repeatable reports whether a new part could read the body from its beginning, as things stand.
func (u *upload) repeatable() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.closed && !u.lost && !u.brokenLocked() && (u.limit > 0 || !u.reading)
}

// recorded reports whether the body can be sent again without being made anew.
func (u *upload) recorded() bool { return u.limit > 0 }

// hasBegun reports whether anything was read through p.
func (p *part) hasBegun() bool {
	p.up.mu.Lock()
	defer p.up.mu.Unlock()
	return p.began
}

// failure returns what reading the body has failed with, nil if it has not.
func (u *upload) failure() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.brokenLocked() {
		return nil
	}
	return u.err
}

func (u *upload) brokenLocked() bool { return u.err != nil && !errors.Is(u.err, io.EOF) }
