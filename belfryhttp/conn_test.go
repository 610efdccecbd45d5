package belfryhttp_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfryhttp"
)

// A half is a connection whose Read does not tell that the peer has closed it, as if its reader were late.
type half struct {
	*net.TCPConn
	late <-chan struct{}
}

func (h *half) Read(b []byte) (int, error) {
	n, err := h.TCPConn.Read(b)
	if err != nil {
		<-h.late
	}
	return n, err
}

// TestAClosedConnectionIsNotWrittenTo: a server closes an idle connection. A request that may not be sent twice comes before the
// transport has noticed. It is refused as unsent, and its body is as it was.
func TestAClosedConnectionIsNotWrittenTo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closed := make(chan struct{})
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		c.Close()
		close(closed)
	}()
	late := make(chan struct{})
	defer close(late)
	var dialled atomic.Int64
	tr := belfryhttp.NewTransport(0)
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dialled.Add(1) > 1 {
			return nil, io.ErrUnexpectedEOF // so that a new connection is no way out
		}
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &half{c.(*net.TCPConn), late}, nil
	}
	svc, err := belfryhttp.Endpoint("http://"+l.Addr().String(), belfryhttp.Config{Transport: tr})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, body string) error {
		req, _ := http.NewRequestWithContext(t.Context(), method, "http://x/", io.NopCloser(strings.NewReader(body)))
		res, err := belfryhttp.RoundTripper(svc, belfryhttp.Config{BodyBuffer: 1 << 10}).RoundTrip(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		return err
	}
	if err := ask(http.MethodGet, ""); err != nil {
		t.Fatal(err)
	}
	<-closed
	if err := ask(http.MethodPost, "body"); !isDial(err) {
		t.Errorf("the request comes back with %v, want a refusal for want of a connection", err)
	}
}

func isDial(err error) bool {
	r, ok := err.(*belfry.Rejection) //nolint:errorlint // the very error
	return ok && r.Layer == belfryhttp.LayerDial
}
