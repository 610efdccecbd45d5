package proxy

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"
)

// exchangeKey is the key of an exchange in its request's context.
type exchangeKey struct{}

// An exchange is one request with its answer, as its client sees it: it passes the answer on, and remembers what happened.
type exchange struct {
	http.ResponseWriter
	control *http.ResponseController
	began   time.Time
	stall   time.Duration
	record  Record

	// mu guards what attempts write into record, which may run side by side.
	mu sync.Mutex
}

// asks notes that a server is asked.
func (x *exchange) asks(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.record.Endpoint = key
	x.record.Attempts++
}

// answers notes which server has answered.
func (x *exchange) answers(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.record.Endpoint = key
}

// attempts returns how many servers were asked.
func (x *exchange) attempts() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.record.Attempts
}

// Unwrap is for [http.ResponseController].
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader notes the status, unless a final one follows.
func (x *exchange) WriteHeader(status int) {
	if status >= 200 {
		x.answered(status)
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) answered(status int) {
	if x.record.Status == 0 {
		x.record.Status, x.record.Latency = status, time.Since(x.began)
	}
}

// Write gives the client a while to take what is written. A client that takes nothing would keep its place in all limits for
// as long as its connection lives.
func (x *exchange) Write(b []byte) (int, error) {
	x.answered(http.StatusOK)
	defer x.within()()
	n, err := x.ResponseWriter.Write(b)
	x.record.Bytes += int64(n)
	return n, err
}

// FlushError gives the client the same while.
func (x *exchange) FlushError() error {
	x.answered(http.StatusOK)
	defer x.within()()
	return x.control.Flush()
}

// within sets a deadline for writing, and returns what takes it back: one that passes while nothing is written would end
// an HTTP/2 stream.
func (x *exchange) within() func() {
	_ = x.control.SetWriteDeadline(time.Now().Add(x.stall)) // where there are none, as in tests, there is no client to be slow
	return x.unbounded
}

func (x *exchange) unbounded() { _ = x.control.SetWriteDeadline(time.Time{}) }

// Hijack notes that the connection is upgraded.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := x.control.Hijack()
	if err == nil {
		x.answered(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}
