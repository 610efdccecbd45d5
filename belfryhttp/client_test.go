package belfryhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/timeout"
)

// A client is an http.Client over a stack over servers in memory.
type client struct {
	http.Client
	trip    *Tripper
	limiter *limit.Limiter
}

// newClient returns the client of the package documentation, with one place, a timeout of ten seconds and three attempts.
func newClient(t *testing.T, tr *http.Transport, cfg Config, addrs ...string) *client {
	t.Helper()
	cfg.Transport = tr
	replicas, err := Balance(discover.List(addrs...), balance.Config{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { replicas.Close() })
	limiter := limit.NewLimiter(1)
	svc, err := NewStack(cfg).
		LoadShed().
		Buffer(64).
		Limiter(limiter).
		Timeout(10 * time.Second).
		Retry(retry.Config{MaxAttempts: 3}).
		Build(replicas)
	if err != nil {
		t.Fatal(err)
	}
	trip := RoundTripper(svc, cfg)
	return &client{Client: http.Client{Transport: trip}, trip: trip, limiter: limiter}
}

func (c *client) wantFree(t *testing.T, when string) {
	t.Helper()
	if s := c.limiter.Stats(); s.InFlight != 0 {
		t.Errorf("%s: %d calls hold a place", when, s.InFlight)
	}
}

func (c *client) wantHeld(t *testing.T, when string) {
	t.Helper()
	if s := c.limiter.Stats(); s.InFlight != 1 {
		t.Errorf("%s: %d calls hold a place, want 1", when, s.InFlight)
	}
}

// overBoth runs f in a bubble for HTTP/1 and for HTTP/2.
func overBoth(t *testing.T, name string, f func(t *testing.T, n *network, tr *http.Transport)) {
	for version, protocols := range map[string]*http.Protocols{"HTTP/1": nil, "HTTP/2": h2c()} {
		t.Run(name+" over "+version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				f(t, n, n.transport(protocols))
			})
		})
	}
}

// failing returns a handler that fails so many times with a body of that size, and then echoes.
func failing(times int32, status int, size int) http.HandlerFunc {
	var failed atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if failed.Add(1) <= times {
			w.WriteHeader(status)
			_, _ = w.Write(make([]byte, size))
			return
		}
		_, _ = w.Write(body)
	}
}

func TestClientTriesAgainWithTheSameBody(t *testing.T) {
	overBoth(t, "C1 C2 D22 the connection is kept, and the place until the body is read", func(t *testing.T, n *network, tr *http.Transport) {
		h := n.serve(failing(2, 503, 1000))
		c := newClient(t, tr, Config{}, "http://a")
		res, err := c.Do(newRequest(t, "PUT", "http://svc/x", strings.NewReader("hello")))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v, %v", res, err)
		}
		c.wantHeld(t, "answered, body unread")
		wantRead(t, res.Body, "hello")
		c.wantFree(t, "body read")
		if opened := h.opened.Load(); opened != 1 {
			t.Errorf("%d connections were opened; the bodies of the 503s were not drained", opened)
		}
	})
	overBoth(t, "a body too long to drain is cut off", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(failing(2, 503, 1<<20))
		c := newClient(t, tr, Config{}, "http://a")
		start := time.Now()
		res, err := c.Do(newRequest(t, "GET", "http://svc/x", nil))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v, %v", res, err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		res.Body.Close()
		c.wantFree(t, "body closed")
	})
	overBoth(t, "a body from a stream, buffered", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(failing(2, 503, 0))
		c := newClient(t, tr, Config{BodyBuffer: 1 << 20}, "http://a")
		src := newSource(t, strings.Repeat("x", 1<<20))
		res, err := c.Do(newRequest(t, "PUT", "http://svc/x", src))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v, %v", res, err)
		}
		wantRead(t, res.Body, strings.Repeat("x", 1<<20))
		src.wantClosed(1)
	})
	overBoth(t, "a body from a stream is sent once", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(failing(2, 503, 0))
		c := newClient(t, tr, Config{}, "http://a")
		src := newSource(t, "hello")
		res, err := c.Do(newRequest(t, "PUT", "http://svc/x", src))
		if err != nil || res.StatusCode != 503 {
			t.Fatalf("%v, %v", res, err)
		}
		res.Body.Close()
		src.wantClosed(1)
		c.wantFree(t, "body closed")
		if s := c.trip.Stats(); s.SentOnce != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A body larger than all buffers on the way, read for longer than the timeout of the call, after retries.
func TestClientReadsBodiesToTheirEnd(t *testing.T) {
	big := bytes.Repeat([]byte("belfry"), 512<<10/6)
	overBoth(t, "512 KiB in an hour", func(t *testing.T, n *network, tr *http.Transport) {
		times := 0
		n.serve(func(w http.ResponseWriter, _ *http.Request) {
			if times++; times < 3 {
				w.WriteHeader(502)
				return
			}
			_, _ = w.Write(big)
		})
		c := newClient(t, tr, Config{}, "http://a")
		res, err := c.Get("http://svc/x")
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for b := make([]byte, 10_000); err == nil; {
			var k int
			k, err = res.Body.Read(b)
			got = append(got, b[:k]...)
			time.Sleep(time.Minute)
		}
		if err != io.EOF || !bytes.Equal(got, big) {
			t.Errorf("read %d of %d bytes, %v", len(got), len(big), err)
		}
		c.wantFree(t, "body read")
	})
	overBoth(t, "a body that breaks half way", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write(big[:100_000])
			panic(http.ErrAbortHandler)
		})
		c := newClient(t, tr, Config{}, "http://a")
		res, err := c.Get("http://svc/x")
		if err != nil {
			t.Fatal(err)
		}
		c.wantHeld(t, "body unread")
		got, err := io.ReadAll(res.Body)
		if err == nil || len(got) > 100_000 {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
		c.wantFree(t, "body broken") // also without Close
		res.Body.Close()
	})
	overBoth(t, "trailers", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Trailer", "X-Sum")
			_, _ = io.WriteString(w, "hello")
			w.Header().Set("X-Sum", "42"+r.Trailer.Get("X-Asked"))
		})
		c := newClient(t, tr, Config{BodyBuffer: 100}, "http://a")
		req := newRequest(t, "PUT", "http://svc/x", nil)
		req.Trailer = http.Header{"X-Asked": nil}
		req.Body = &trailing{Reader: strings.NewReader("hello"), trailer: req.Trailer}
		req.ContentLength = -1
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		wantRead(t, res.Body, "hello")
		if got := res.Trailer.Get("X-Sum"); got != "42!" {
			t.Errorf("trailer %q", got)
		}
		c.wantFree(t, "body read")
	})
	overBoth(t, "no body", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/length":
				w.Header().Set("Content-Length", "1000")
			case "/204":
				w.WriteHeader(204)
			case "/304":
				w.WriteHeader(304)
			}
		})
		c := newClient(t, tr, Config{}, "http://a")
		for _, to := range []string{"HEAD /length", "HEAD /", "GET /204", "GET /304", "GET /"} {
			method, path, _ := strings.Cut(to, " ")
			res, err := c.Do(newRequest(t, method, "http://svc"+path, nil))
			if err != nil {
				t.Fatal(err)
			}
			if method == "HEAD" && path == "/length" && res.ContentLength != 1000 {
				t.Errorf("%s: length %d", to, res.ContentLength)
			}
			if res.ProtoMajor == 1 { // HTTP/2 has another body for it than http.NoBody
				c.wantFree(t, to+": nothing to read")
			}
			res.Body.Close()
			c.wantFree(t, to+": closed")
		}
	})
	overBoth(t, "chunks as they come", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(func(w http.ResponseWriter, _ *http.Request) {
			for i := range 5 {
				fmt.Fprintf(w, "event %d\n", i)
				w.(http.Flusher).Flush()
				time.Sleep(time.Minute)
			}
		})
		c := newClient(t, tr, Config{}, "http://a")
		start := time.Now()
		res, err := c.Get("http://svc/x")
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(res.Body)
		for i := range 5 {
			if !lines.Scan() || lines.Text() != fmt.Sprintf("event %d", i) || time.Since(start) != time.Duration(i)*time.Minute {
				t.Errorf("after %v: %q, %v", time.Since(start), lines.Text(), lines.Err())
			}
		}
		c.wantHeld(t, "the stream goes on")
		if lines.Scan() || lines.Err() != nil {
			t.Errorf("%q, %v", lines.Text(), lines.Err())
		}
		c.wantFree(t, "the stream has ended")
	})
}

// trailing sets a trailer when it has been read, as clients do.
type trailing struct {
	io.Reader
	trailer http.Header
}

func (tr *trailing) Read(b []byte) (int, error) {
	n, err := tr.Reader.Read(b)
	if err == io.EOF {
		tr.trailer.Set("X-Asked", "!")
	}
	return n, err
}

func (tr *trailing) Close() error { return nil }

func TestClientTimesOut(t *testing.T) {
	overBoth(t, "a server that does not answer", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		c := newClient(t, tr, Config{}, "http://a")
		start := time.Now()
		_, err := c.Get("http://svc/x")
		if took := time.Since(start); !errors.Is(err, timeout.Err) || took != 10*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		if te, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err); !ok || !te.Timeout() {
			t.Errorf("%v does not say that it is a timeout", err)
		}
		if code, reason, _ := Status(err); code != 504 || reason != "deadline" {
			t.Errorf("%d %s", code, reason)
		}
		c.wantFree(t, "timed out")
	})
	overBoth(t, "http.Client.Timeout bounds the body", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		c := newClient(t, tr, Config{}, "http://a")
		c.Timeout = time.Second
		res, err := c.Get("http://svc/x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(res.Body); err == nil {
			t.Error("read to the end")
		}
		c.wantFree(t, "timed out")
	})
	overBoth(t, "a per-attempt timeout is tried again", func(t *testing.T, n *network, tr *http.Transport) {
		var times atomic.Int32
		n.serve(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if times.Add(1) < 3 {
				<-r.Context().Done()
			}
		})
		leaf := Transport(tr)
		var perAttempt service = timeout.New(service(leaf), time.Second, timeout.Config{}, Semantics())
		hc := http.Client{Transport: RoundTripper(retriedService(perAttempt))}
		u := "http://a/x"
		res, err := hc.Get(u)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		times.Store(0)
		_, err = hc.Post(u, "text/plain", strings.NewReader("x"))
		if n := times.Load(); !errors.Is(err, timeout.Err) || n != 1 {
			t.Errorf("POST: %v after %d attempts", err, n)
		}
	})
}

func TestClientLeavesAtOnce(t *testing.T) {
	overBoth(t, "while it waits for room", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(func(http.ResponseWriter, *http.Request) { t.Error("sent") })
		limiter := limit.NewLimiter(0)
		svc := limit.NewConcurrency(service(Transport(tr)), limiter, Semantics())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		src := newSource(t, "hello")
		start := time.Now()
		_, err := RoundTripper(svc).RoundTrip(newRequest(t, "PUT", "http://a", src).WithContext(ctx))
		if !errors.Is(err, belfry.ErrRejected) || !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		src.wantClosed(1)
		if s := limiter.Stats(); s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
	overBoth(t, "while it waits for an answer", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		c := newClient(t, tr, Config{}, "http://a")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := c.Do(newRequest(t, "GET", "http://svc", nil).WithContext(ctx))
		if !errors.Is(err, context.Canceled) || errors.Is(err, belfry.ErrRejected) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		c.wantFree(t, "left")
	})
	overBoth(t, "while it reads", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		c := newClient(t, tr, Config{}, "http://a")
		ctx, cancel := context.WithCancel(t.Context())
		res, err := c.Do(newRequest(t, "GET", "http://svc", nil).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, cancel)
		if _, err := res.Body.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("read: %v", err)
		}
		c.wantFree(t, "left")
	})
}

// A server that answers before it has looked at the body leaves it unread: it can be sent again, buffered or not.
func TestClientExpectsToBeToldToContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		tr := n.transport(nil)
		tr.ExpectContinueTimeout = time.Hour
		times := 0
		n.serve(func(w http.ResponseWriter, r *http.Request) {
			if times++; times == 1 {
				w.WriteHeader(503)
				return
			}
			_, _ = io.Copy(w, r.Body)
		})
		c := newClient(t, tr, Config{}, "http://a")
		src := newSource(t, "hello")
		req := newRequest(t, "PUT", "http://svc/x", src)
		req.Header.Set("Expect", "100-continue")
		res, err := c.Do(req)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%v, %v", res, err)
		}
		wantRead(t, res.Body, "hello")
		src.wantClosed(1)
		c.wantFree(t, "body read")
	})
}

func TestClientUpgradesAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		h := n.serve(func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			rw.Flush()
			_, _ = io.Copy(rw, io.LimitReader(rw, 0))
			for {
				line, err := rw.ReadString('\n')
				if err != nil {
					return
				}
				_, _ = rw.WriteString(line)
				rw.Flush()
			}
		})
		c := newClient(t, n.transport(nil), Config{}, "http://a")
		req := newRequest(t, "GET", "http://svc", nil)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		res, err := c.trip.RoundTrip(req)
		if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%v, %v", res, err)
		}
		conn, ok := res.Body.(io.ReadWriteCloser)
		if !ok {
			t.Fatal("the connection cannot be written to")
		}
		r := bufio.NewReader(conn)
		for i := range 3 {
			time.Sleep(time.Hour) // longer than the timeout of the call
			fmt.Fprintf(conn, "line %d\n", i)
			if line, err := r.ReadString('\n'); line != fmt.Sprintf("line %d\n", i) {
				t.Errorf("%q, %v", line, err)
			}
		}
		c.wantHeld(t, "upgraded")
		conn.Close()
		c.wantFree(t, "closed")
		synctest.Wait()
		if live := h.live.Load(); live != 0 {
			t.Errorf("%d connections are open", live)
		}
	})
}

// Over HTTP/2 a request may go on while its response does: nothing reads the body ahead, or closes it early, buffered or not.
func TestClientTalksBothWaysAtOnce(t *testing.T) {
	for _, buffer := range []int64{0, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			n.serve(func(w http.ResponseWriter, r *http.Request) {
				w.(http.Flusher).Flush()
				lines := bufio.NewScanner(r.Body)
				for lines.Scan() {
					fmt.Fprintln(w, lines.Text())
					w.(http.Flusher).Flush()
				}
			})
			c := newClient(t, n.transport(h2c()), Config{BodyBuffer: buffer}, "http://a")
			r, w := io.Pipe()
			src := &source{Reader: r, t: t}
			res, err := c.Do(newRequest(t, "PUT", "http://svc", src))
			if err != nil {
				t.Fatal(err)
			}
			answers := bufio.NewReader(res.Body)
			for i := range 3 {
				time.Sleep(time.Minute)
				fmt.Fprintf(w, "line %d\n", i)
				if line, err := answers.ReadString('\n'); line != fmt.Sprintf("line %d\n", i) {
					t.Errorf("%q, %v", line, err)
				}
			}
			c.wantHeld(t, "talking")
			w.Close()
			wantRead(t, answers, "")
			synctest.Wait()
			src.wantClosed(1)
			c.wantFree(t, "talked")
		})
	}
}

// Endpoints that cannot be reached cost nobody a request, not even one that must not be sent twice.
func TestClientGoesAroundADeadEndpoint(t *testing.T) {
	overBoth(t, "POST", func(t *testing.T, n *network, tr *http.Transport) {
		n.serve(failing(0, 0, 0))
		c := newClient(t, tr, Config{}, "http://a", "http://dead")
		for range 30 {
			src := newSource(t, "hello")
			res, err := c.Do(newRequest(t, "POST", "http://svc", src))
			if err != nil {
				t.Fatal(err)
			}
			wantRead(t, res.Body, "hello")
			src.wantClosed(1)
		}
	})
}
