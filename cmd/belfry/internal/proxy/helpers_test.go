package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what should come at once.
const patience = 5 * time.Second

// A running is a proxy under test, with what it says.
type running struct {
	url     string
	addr    string
	signals chan os.Signal
	ended   chan int
	log     *logged
	client  *http.Client
	server  *Server // set if Options.Admin was not
}

// A logged is a log that tests read.
type logged struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan string // receives the address when the proxy listens
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, rest, ok := strings.Cut(string(b), "address="); ok {
		addr, _, _ := strings.Cut(rest, " ")
		l.ready <- addr
	}
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs a proxy in front of targets, and ends it with the test.
func start(t *testing.T, change func(*Config), targets ...string) *running {
	t.Helper()
	return startWith(t, configure(change, targets...), Options{})
}

// configure returns a Config for tests.
func configure(change func(*Config), targets ...string) Config {
	cfg := Defaults()
	cfg.Listen, cfg.Admin, cfg.Targets, cfg.Drain = "127.0.0.1:0", "127.0.0.1:0", targets, time.Second
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// startWith runs a proxy, and ends it with the test.
func startWith(t *testing.T, cfg Config, opts Options) *running {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	r := &running{signals: make(chan os.Signal, 2), ended: make(chan int, 1), log: &logged{ready: make(chan string, 1)}}
	if opts.Admin == nil {
		opts.Admin = func(s *Server) http.Handler {
			r.server = s
			return http.NotFoundHandler()
		}
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		code, err := run(cfg, opts, slog.New(slog.NewTextHandler(r.log, nil)), r.signals)
		if err != nil {
			t.Error(err)
		}
		r.ended <- code
	}()
	select {
	case r.addr = <-r.log.ready:
		r.url = "http://" + r.addr
		if cfg.TLS.Cert != "" {
			r.url = "https://" + r.addr
		}
	case <-time.After(patience):
		t.Fatal("the proxy does not listen")
	}
	transport := &http.Transport{DisableCompression: true}
	r.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		for range 2 {
			select {
			case r.signals <- syscall.SIGTERM:
			case <-over:
			}
		}
		<-over
	})
	return r
}

// server starts an HTTP server that ends with the test.
func server(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	return serverOf(t, func(*http.Server) {}, handle)
}

// serverOf starts an HTTP server that is changed first.
func serverOf(t *testing.T, change func(*http.Server), handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(handle)
	change(s.Config)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// nobody returns the URL of a server that is not there.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// fetch sends a request and returns the answer with its whole body.
func (r *running) fetch(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, reader)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

func wait[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing for %v", what, patience)
		panic("unreachable")
	}
}

// upgrade asks for a websocket over a connection of its own.
func (r *running) upgrade(t *testing.T) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, reader, res
}
