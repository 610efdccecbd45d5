package belfryhttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// A network is servers and connections in memory, for use in a bubble: pipes block so that virtual time can pass.
type network struct {
	t     testing.TB
	mu    sync.Mutex
	hosts map[string]*host
}

// A host listens at one address of a network.
type host struct {
	addr   string
	conns  chan net.Conn
	closed chan struct{}
	close  func()
	opened atomic.Int32 // connections
	live   atomic.Int32 // of these
}

func newNetwork(t testing.TB) *network { return &network{t: t, hosts: map[string]*host{}} }

func (n *network) listen(addr string) *host {
	h := &host{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	n.hosts[addr] = h
	n.mu.Unlock()
	h.close = sync.OnceFunc(func() { close(h.closed) })
	n.t.Cleanup(h.close)
	return h
}

// serve runs an HTTP server at a:80, with HTTP/1 and unencrypted HTTP/2, until the end of the test.
func (n *network) serve(handler http.HandlerFunc) *host {
	h := n.listen("a:80")
	server := &http.Server{Handler: handler, ErrorLog: quiet(), Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(h)
	}()
	n.t.Cleanup(func() {
		server.Close()
		<-done
	})
	return h
}

// transport returns a transport of the network.
func (n *network) transport(protocols *http.Protocols) *http.Transport {
	tr := &http.Transport{DialContext: n.dial, Protocols: protocols}
	n.t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func (n *network) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	n.mu.Lock()
	h := n.hosts[addr]
	n.mu.Unlock()
	if h == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	near, far := net.Pipe()
	select {
	case h.conns <- far:
	case <-h.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h.opened.Add(1)
	h.live.Add(1)
	return &countedConn{Conn: near, closed: sync.OnceFunc(func() { h.live.Add(-1) })}, nil
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// Accept waits for a connection.
func (h *host) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close makes the host refuse connections.
func (h *host) Close() error {
	h.close()
	return nil
}

// Addr returns the host's address.
func (h *host) Addr() net.Addr { return memAddr(h.addr) }

type memAddr string

func (memAddr) Network() string  { return "memory" }
func (a memAddr) String() string { return string(a) }
