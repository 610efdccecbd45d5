package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
	code, err := run(cfg, Options{}, slog.New(slog.DiscardHandler), nil)
	want := "--listen " + cfg.Listen + ": another program listens there"
	if code != ExitFailed || err == nil || err.Error() != want {
		t.Errorf("exit code %d, %v; want %s", code, err, want)
	}
}

func TestTheStackIsListedInOrder(t *testing.T) {
	p := start(t, nil, "http://127.0.0.1:1", "http://127.0.0.1:2")
	text := p.log.String()
	at := 0
	for _, layer := range []string{"load shed → ", "buffer(512", "concurrency limit(1024) → ", "timeout(30s) → ", "retry(3 ", "balance(expected) → ", "concurrency limit(256 each)"} {
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
