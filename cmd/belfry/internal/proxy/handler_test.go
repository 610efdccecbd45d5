package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

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
