package belfryhttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
)

// errEnded is why nothing is written to a connection.
var errEnded = errors.New("belfryhttp: the server has closed the connection")

// A conn is a connection that knows how much was written to it, and does not begin to write to a server that has closed it. An
// http.Transport finds that out by reading, and may be late: then a request goes to nobody, and nobody can know that.
type conn struct {
	net.Conn
	idle    atomic.Bool // and so may have been closed since
	closed  atomic.Bool
	written atomic.Int64
	ended   func() // told of Close; or nil
}

// Write writes, unless the server has closed a connection that was idle.
func (c *conn) Write(b []byte) (int, error) {
	if c.idle.Swap(false) && hasEnded(c.Conn) {
		return 0, errEnded
	}
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// Close closes the connection. Nothing is written after that.
func (c *conn) Close() error {
	c.closed.Store(true)
	if c.ended != nil {
		c.ended()
	}
	return c.Conn.Close()
}

// watched returns the conn at the bottom of a connection, nil if there is none.
func watched(c net.Conn) *conn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = t.NetConn()
	}
	w, _ := c.(*conn)
	return w
}

// watch makes t use conns, unless it dials in a way of its own that is not DialContext.
func watch(t *http.Transport) *http.Transport {
	dial := t.DialContext
	if dial == nil { // setting it would turn HTTP/2 off
		return t
	}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if o := openingOf(ctx); o != nil {
			return o.dial(ctx, network, addr, dial)
		}
		c, err := dial(ctx, network, addr)
		if _, watched := c.(*conn); watched || err != nil {
			return c, err
		}
		return &conn{Conn: c}, nil
	}
	return t
}
