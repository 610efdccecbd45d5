package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// speak opens a connection to the proxy, and writes text to it.
func (r *running) speak(t *testing.T, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// nothingHeld waits until no request has a place.
func (r *running) nothingHeld(t *testing.T) {
	t.Helper()
	eventually(t, "free places", func() bool {
		s := r.server.State()
		return s.Requests.InFlight == 0 && s.Limit.InFlight+s.Limit.Reserved+s.Buffer.Seated == 0
	})
}

func TestSlowClientsAreSentAway(t *testing.T) {
	const soon = 100 * time.Millisecond
	target := server(t, func(w http.ResponseWriter, r *http.Request) {
		for part := make([]byte, 1<<20); r.URL.Path == "/endless"; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	p := start(t, func(c *Config) {
		c.Client.HeaderTimeout, c.Client.IdleTimeout, c.Client.StallTimeout = soon, soon, soon
	}, target)
	t.Run("with half of a header", func(t *testing.T) {
		_, err := io.Copy(io.Discard, p.speak(t, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "))
		if err != nil || p.server.State().Requests.Total != 0 {
			t.Errorf("%v, %+v", err, p.server.State().Requests)
		}
	})
	t.Run("with nothing more to say", func(t *testing.T) {
		reader := bufio.NewReader(p.speak(t, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
		res, err := http.ReadResponse(reader, nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", res, err)
		}
		res.Body.Close()
		if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is open: %v", err)
		}
	})
	t.Run("who take nothing of the answer", func(t *testing.T) {
		p.speak(t, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
		eventually(t, "the request", func() bool { return p.server.State().Requests.Total == 2 })
		p.nothingHeld(t)
	})
}

func TestABodyThatStopsHalfWayFreesItsPlace(t *testing.T) {
	arrived := make(chan error, 1)
	p := start(t, nil, server(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		arrived <- err
	}))
	conn := p.speak(t, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello")
	eventually(t, "the request", func() bool { return p.server.State().Limit.InFlight == 1 })
	conn.Close()
	if err := wait(t, "the end at the server", arrived); err == nil {
		t.Error("the server takes half of a body for all of it")
	}
	p.nothingHeld(t)
	if s := p.server.State(); s.Retry.Retries != 0 || len(s.Endpoints) != 1 || s.Endpoints[0].Failures != 0 {
		t.Errorf("it counts against the server: %+v, %+v", s.Retry, s.Endpoints)
	}
}

func TestAClientThatLeavesWhileQueuedGivesUpItsSeat(t *testing.T) {
	started, rest := make(chan struct{}, 2), make(chan struct{})
	p := start(t, func(c *Config) { c.Limit = 1 }, server(t, func(http.ResponseWriter, *http.Request) {
		started <- struct{}{}
		<-rest
	}))
	answer := make(chan string, 1)
	go func() {
		res, _ := p.fetch(t, http.MethodGet, "/", "")
		answer <- res.Status
	}()
	wait(t, "the first request", started)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	left := make(chan error, 1)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.url, http.NoBody)
		_, err := p.client.Do(req) //nolint:bodyclose // there is none
		left <- err
	}()
	eventually(t, "a queue", func() bool { return p.server.State().Buffer.Queued == 1 })
	leave()
	if err := wait(t, "the client's end", left); !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	eventually(t, "an empty queue", func() bool { s := p.server.State(); return s.Buffer.Queued == 0 && s.Requests.ClientsGone == 1 })
	close(rest)
	if got := wait(t, "the answer", answer); got != fmt.Sprint(http.StatusOK, " OK") || len(started) > 0 {
		t.Errorf("answered %s, and the server was asked %d times more", got, len(started))
	}
	p.nothingHeld(t)
}
