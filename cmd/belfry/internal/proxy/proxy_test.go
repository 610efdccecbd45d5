package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-go/belfry/belfryhttp"
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
	cfg := Defaults()
	cfg.Listen, cfg.Targets, cfg.Drain = "127.0.0.1:0", targets, time.Second
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	r := &running{signals: make(chan os.Signal, 2), ended: make(chan int, 1), log: &logged{ready: make(chan string, 1)}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		code, err := run(cfg, slog.New(slog.NewTextHandler(r.log, nil)), r.signals)
		if err != nil {
			t.Error(err)
		}
		r.ended <- code
	}()
	select {
	case r.addr = <-r.log.ready:
		r.url = "http://" + r.addr
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
	s := httptest.NewUnstartedServer(handle)
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

func TestARequestArrivesAsItWasSent(t *testing.T) {
	type arrived struct {
		req  *http.Request
		body string
	}
	seen := make(chan arrived, 1)
	target := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- arrived{r.Clone(context.Background()), string(body)}
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "hello")
	})
	p := start(t, nil, target)
	res, body := p.fetch(t, http.MethodPost, "/a%2Fb//c;d?x=1;y=%20&z", "the body",
		"Host", "shop.example", "X-Forwarded-For", "6.6.6.6", "X-Forwarded-Host", "evil", "Forwarded", "for=6.6.6.6", "X-Own", "1")
	if res.StatusCode != http.StatusTeapot || res.Header.Get("X-Answer") != "yes" || body != "hello" {
		t.Errorf("answered %s, %v, %q", res.Status, res.Header, body)
	}
	got := wait(t, "the request", seen)
	if got.req.Host != "shop.example" || got.req.RequestURI != "/a%2Fb//c;d?x=1;y=%20&z" || got.body != "the body" || got.req.Header.Get("X-Own") != "1" {
		t.Errorf("arrived for %s as %s with %q", got.req.Host, got.req.RequestURI, got.body)
	}
	for name, want := range map[string]string{
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "shop.example", "X-Forwarded-Proto": "http", "Forwarded": "", "Accept-Encoding": "",
	} {
		if value := strings.Join(got.req.Header.Values(name), "|"); value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
}

func TestAStreamIsFlushedAtOnce(t *testing.T) {
	for name, length := range map[string]string{"of unknown length": "", "of known length": "10"} {
		t.Run(name, func(t *testing.T) {
			rest := make(chan struct{})
			target := server(t, func(w http.ResponseWriter, r *http.Request) {
				if length != "" {
					w.Header().Set("Content-Length", length)
				}
				_, _ = io.WriteString(w, "first")
				_ = http.NewResponseController(w).Flush()
				<-rest
				_, _ = io.WriteString(w, "later")
			})
			free := sync.OnceFunc(func() { close(rest) })
			defer free()
			p := start(t, nil, target)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
			res, err := p.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			first := make([]byte, 5)
			if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "first" {
				t.Fatalf("while the stream is open: %q, %v", first, err)
			}
			free()
			if later, err := io.ReadAll(res.Body); err != nil || string(later) != "later" {
				t.Errorf("then: %q, %v", later, err)
			}
		})
	}
}

func TestAnAnswerThatBreaksOffIsNotTakenForAWholeOne(t *testing.T) {
	target := server(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	p := start(t, nil, target)
	res, err := p.client.Get(p.url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("read %q without an error", text)
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

// echo answers every upgrade with protocol, and what comes after it with itself.
func echo(protocol string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol)
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
	}
}

func TestAnUpgradedConnectionOutlivesTheTimeout(t *testing.T) {
	p := start(t, func(c *Config) { c.Timeout = 100 * time.Millisecond; c.EndpointLimit = 1 }, server(t, echo("websocket")))
	conn, reader, res := p.upgrade(t)
	if res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("answered %s", res.Status)
	}
	for _, pause := range []time.Duration{0, 300 * time.Millisecond} {
		<-time.After(pause)
		if _, err := io.WriteString(conn, "ping\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := reader.ReadString('\n'); err != nil || got != "ping\n" {
			t.Errorf("after %v: %q, %v", pause, got, err)
		}
	}
	conn.Close()
	// The place that it held is free again.
	again, _, res := p.upgrade(t)
	defer again.Close()
	if res.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("the next upgrade is answered %s", res.Status)
	}
}

func TestAnUpgradeToSomethingElseIsRefusedAndFreesItsPlace(t *testing.T) {
	p := start(t, func(c *Config) { c.Limit, c.Buffer, c.EndpointLimit, c.BufferWait = 1, 1, 1, time.Second }, server(t, echo("other")))
	for range 5 {
		if _, _, res := p.upgrade(t); res.StatusCode != http.StatusBadGateway {
			t.Fatalf("answered %s, want 502", res.Status)
		}
	}
}

func TestAFullProxyRefusesAtOnceAndSaysWhenToComeBack(t *testing.T) {
	started, rest := make(chan struct{}, 10), make(chan struct{})
	target := server(t, func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-rest
	})
	free := sync.OnceFunc(func() { close(rest) })
	defer free()
	p := start(t, func(c *Config) { c.Limit, c.Buffer, c.EndpointLimit, c.BufferWait = 1, 1, 1, time.Minute }, target)
	answers := make(chan *http.Response, 10)
	send := func() {
		res, _ := p.fetch(t, http.MethodGet, "/", "")
		answers <- res
	}
	go send()
	wait(t, "the first request", started)
	// Of five more at once, one or two wait for their turn. The others are told at once that there is no room.
	const more = 5
	for range more {
		go send()
	}
	for range more - 2 {
		res := wait(t, "a refusal", answers)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || res.Header.Get(belfryhttp.ReasonHeader) == "" {
			t.Errorf("where there is no room: %s, %v", res.Status, res.Header)
		}
	}
	free()
	served := 0
	for range 3 {
		if res := wait(t, "an answer", answers); res.StatusCode == http.StatusOK {
			served++
		}
	}
	if served < 2 {
		t.Errorf("%d were served, want the first and at least one that waited", served)
	}
}

func TestAWaitThatIsTooLongEndsIn503(t *testing.T) {
	started, rest := make(chan struct{}, 1), make(chan struct{})
	target := server(t, func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-rest
	})
	free := sync.OnceFunc(func() { close(rest) })
	defer free()
	p := start(t, func(c *Config) { c.Limit, c.BufferWait = 1, 50*time.Millisecond }, target)
	first := make(chan int, 1)
	go func() {
		res, _ := p.fetch(t, http.MethodGet, "/", "")
		first <- res.StatusCode
	}()
	wait(t, "the first request", started)
	res, _ := p.fetch(t, http.MethodGet, "/", "")
	if reason := res.Header.Get(belfryhttp.ReasonHeader); res.StatusCode != http.StatusServiceUnavailable || !strings.HasPrefix(reason, "buffer") {
		t.Errorf("answered %s, because of %q", res.Status, reason)
	}
	free()
	if got := wait(t, "the first answer", first); got != http.StatusOK {
		t.Errorf("the first request is answered %d", got)
	}
}

func TestAServerGetsNoMoreThanItsLimit(t *testing.T) {
	var now, most atomic.Int64
	target := server(t, func(w http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-time.After(5 * time.Millisecond)
		now.Add(-1)
	})
	p := start(t, func(c *Config) { c.EndpointLimit = 2 }, target)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if res, _ := p.fetch(t, http.MethodGet, "/", ""); res.StatusCode != http.StatusOK {
				t.Errorf("answered %s", res.Status)
			}
		})
	}
	all.Wait()
	if most.Load() > 2 {
		t.Errorf("%d requests at a time, want at most 2", most.Load())
	}
}

func TestErrorsOfTheProxy(t *testing.T) {
	never := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		target string
		change func(*Config)
		want   int
	}{
		"502 nobody there":     {nobody(t), nil, http.StatusBadGateway},
		"502 no answer":        {server(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), nil, http.StatusBadGateway},
		"504 an answer late":   {server(t, never), func(c *Config) { c.Timeout = 50 * time.Millisecond }, http.StatusGatewayTimeout},
		"504 of the server":    {server(t, status(http.StatusGatewayTimeout)), nil, http.StatusGatewayTimeout},
		"500 is not a refusal": {server(t, status(http.StatusInternalServerError)), nil, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, c.change, c.target)
			res, _ := p.fetch(t, http.MethodGet, "/", "")
			if res.StatusCode != c.want {
				t.Errorf("answered %s, want %d", res.Status, c.want)
			}
			if own := res.Header.Get(belfryhttp.ReasonHeader); (own == "") != (c.want == 500 || strings.Contains(name, "of the server")) {
				t.Errorf("%s is %q", belfryhttp.ReasonHeader, own)
			}
		})
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
}

// TestRetries sends requests to two servers, one of which refuses everything: what may be sent twice is answered by the other.
func TestRetries(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, c := range []struct {
		name, method, body string
		header             []string
		bad                func(t *testing.T) string
		retried            bool
	}{
		{"GET after 503", http.MethodGet, "", nil, refusing, true},
		{"PUT with a small body after 503", http.MethodPut, "small", nil, refusing, true},
		{"PUT with a large body after 503", http.MethodPut, long, nil, refusing, false},
		{"POST after 503", http.MethodPost, "small", nil, refusing, false},
		{"POST with a key after 503", http.MethodPost, "small", []string{"Idempotency-Key", "1"}, refusing, true},
		{"GET after a broken connection", http.MethodGet, "", nil, breaking, true},
		{"POST after a broken connection", http.MethodPost, "small", nil, breaking, false},
		{"POST where nobody is", http.MethodPost, "small", nil, nobody, true},
		{"POST with a large body where nobody is", http.MethodPost, long, nil, nobody, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var good atomic.Int64
			fine := server(t, func(w http.ResponseWriter, r *http.Request) {
				if body, err := io.ReadAll(r.Body); err != nil || string(body) != c.body {
					t.Errorf("the body arrived as %d bytes, %v, want %d", len(body), err, len(c.body))
				}
				good.Add(1)
			})
			p := start(t, func(c *Config) { c.ReplayBytes = 1000 }, c.bad(t), fine)
			const n = 20
			failed := 0
			for range n {
				if res, _ := p.fetch(t, c.method, "/", c.body, c.header...); res.StatusCode != http.StatusOK {
					failed++
				}
			}
			if c.retried && failed > 0 {
				t.Errorf("%d of %d failed, though they could be tried again", failed, n)
			}
			if !c.retried && failed == 0 {
				t.Errorf("none of %d failed, so some were sent again that must not be", n)
			}
			if int(good.Load()) != n-failed {
				t.Errorf("%d arrived at the good server, %d were answered by it", good.Load(), n-failed)
			}
		})
	}
}

func refusing(t *testing.T) string {
	return server(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
}

func breaking(t *testing.T) string {
	return server(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	})
}

func TestAttemptsAndRatioCanForbidRetries(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"one attempt": func(c *Config) { c.Attempts = 1 },
		"ratio 0":     func(c *Config) { c.RetryRatio = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			var arrived atomic.Int64
			p := start(t, change, server(t, func(w http.ResponseWriter, r *http.Request) {
				arrived.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			if res, _ := p.fetch(t, http.MethodGet, "/", ""); res.StatusCode != http.StatusServiceUnavailable || arrived.Load() != 1 {
				t.Errorf("answered %s after %d attempts", res.Status, arrived.Load())
			}
		})
	}
}

func TestAClientThatLeavesEndsItsRequest(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	p := start(t, nil, server(t, func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
		close(ended)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	go func() {
		<-started
		cancel()
	}()
	if _, err := p.client.Do(req); !errors.Is(err, context.Canceled) { //nolint:bodyclose // there is none
		t.Errorf("the client got %v", err)
	}
	wait(t, "the end at the server", ended)
	p.signals <- syscall.SIGTERM
	wait(t, "the end of the proxy", p.ended)
	if text := p.log.String(); !strings.Contains(text, "clients_gone=1") || strings.Contains(text, "level=WARN") {
		t.Errorf("the log says\n%s", text)
	}
}

func TestDrain(t *testing.T) {
	t.Run("what is in flight finishes", func(t *testing.T) {
		started, rest := make(chan struct{}), make(chan struct{})
		p := start(t, func(c *Config) { c.Drain = patience }, server(t, func(w http.ResponseWriter, r *http.Request) {
			close(started)
			<-rest
			_, _ = io.WriteString(w, "done")
		}))
		answer := make(chan string, 1)
		go func() {
			_, body := p.fetch(t, http.MethodGet, "/", "")
			answer <- body
		}()
		wait(t, "the request", started)
		p.signals <- syscall.SIGTERM
		refused := make(chan struct{})
		go func() {
			defer close(refused)
			for t.Context().Err() == nil {
				conn, err := net.Dial("tcp", p.addr)
				if err != nil {
					return
				}
				conn.Close()
			}
		}()
		wait(t, "the end of listening", refused)
		close(rest)
		if got := wait(t, "the answer", answer); got != "done" {
			t.Errorf("answered %q", got)
		}
		if code := wait(t, "the end", p.ended); code != ExitOK {
			t.Errorf("exit code %d", code)
		}
		if text := p.log.String(); !strings.Contains(text, "requests=1 failed=0") || !strings.Contains(text, "cut_off=0") {
			t.Errorf("the log says\n%s", text)
		}
	})
	t.Run("an upgraded connection is cut when time is up", func(t *testing.T) {
		p := start(t, func(c *Config) { c.Drain = 100 * time.Millisecond }, server(t, echo("websocket")))
		_, reader, _ := p.upgrade(t)
		p.signals <- syscall.SIGTERM
		if code := wait(t, "the end", p.ended); code != ExitOK {
			t.Errorf("exit code %d", code)
		}
		if _, err := reader.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection is still open: %v", err)
		}
		if text := p.log.String(); !strings.Contains(text, "cut_off=1") {
			t.Errorf("the log says\n%s", text)
		}
	})
	t.Run("an upgraded connection that ends in time is waited for", func(t *testing.T) {
		p := start(t, func(c *Config) { c.Drain = patience }, server(t, echo("websocket")))
		conn, _, _ := p.upgrade(t)
		p.signals <- syscall.SIGTERM
		time.AfterFunc(200*time.Millisecond, func() { conn.Close() })
		wait(t, "the end", p.ended)
		if text := p.log.String(); !strings.Contains(text, "cut_off=0") {
			t.Errorf("the log says\n%s", text)
		}
	})
	t.Run("the second signal ends it at once", func(t *testing.T) {
		started := make(chan struct{})
		p := start(t, func(c *Config) { c.Drain = time.Hour }, server(t, func(w http.ResponseWriter, r *http.Request) {
			close(started)
			<-r.Context().Done()
		}))
		go func() {
			if res, err := p.client.Get(p.url); err == nil {
				res.Body.Close()
			}
		}()
		wait(t, "the request", started)
		p.signals <- syscall.SIGTERM
		p.signals <- syscall.SIGINT
		if code := wait(t, "the end", p.ended); code != 128+int(syscall.SIGINT) {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestATakenAddressIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := Defaults()
	cfg.Listen, cfg.Targets = l.Addr().String(), []string{"http://a"}
	code, err := run(cfg, slog.New(slog.DiscardHandler), nil)
	want := "--listen " + cfg.Listen + ": another program listens there"
	if code != ExitFailed || err == nil || err.Error() != want {
		t.Errorf("exit code %d, %v; want %s", code, err, want)
	}
}

func TestTheStackIsListedInOrder(t *testing.T) {
	p := start(t, nil, "http://127.0.0.1:1", "http://127.0.0.1:2")
	text := p.log.String()
	at := 0
	for _, layer := range []string{"load shed → ", "buffer(512", "concurrency limit(1024) → ", "timeout(30s) → ", "retry(3 ", "balance(peak ewma, 2 endpoints) → ", "concurrency limit(256 each)"} {
		i := strings.Index(text[at:], layer)
		if i < 0 {
			t.Fatalf("%q is missing, or out of order, in\n%s", layer, text)
		}
		at += i
	}
	if u, err := url.Parse(p.url); err != nil || u.Port() == "0" {
		t.Errorf("the address is %s, %v", p.url, err)
	}
}

func TestNoOtherProxyIsAsked(t *testing.T) {
	if newTransport(1).Proxy != nil {
		t.Error("the transport asks the environment for a proxy")
	}
}
