package belfryhttp

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/belfry-go/belfry"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func mustSemantics(cfg ...Config) *belfry.Semantics[*http.Request, *http.Response] {
	sem := Semantics(cfg...)
	return &sem
}

func h2c() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// serve accepts connections until the test is over, and gives each to handle.
func serve(t testing.TB, handle func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { handle(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// A barrier lets its users through when there are n of them, again and again.
type barrier struct {
	mu   sync.Mutex
	n    int
	here int
	open chan struct{}
}

func newBarrier(n int) *barrier { return &barrier{n: n, open: make(chan struct{})} }

func (b *barrier) wait() {
	b.mu.Lock()
	b.here++
	open := b.open
	if b.here == b.n {
		b.here, b.open = 0, make(chan struct{})
		close(open)
	}
	b.mu.Unlock()
	<-open
}

func connState(f func(http.ConnState)) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, s http.ConnState) { f(s) }
}
