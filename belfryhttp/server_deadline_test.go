package belfryhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/timeout"
)

const timedOutText = "504 Gateway Timeout: deadline\n"

// wantTimedOut checks that res, without its body, is the answer of a deadline of two seconds, just now.
func wantTimedOut(t testing.TB, res *http.Response, start time.Time) {
	t.Helper()
	wantAnswer(t, res, 504, "deadline", "")
	if res.ContentLength != int64(len(timedOutText)) || res.Close != (res.ProtoMajor == 1) {
		t.Errorf("length %d, close %v", res.ContentLength, res.Close)
	}
	if took := time.Since(start); took != 2*time.Second {
		t.Errorf("after %v", took)
	}
}

// send sends req and returns the response, whose body is unread.
func send(t testing.TB, tr *http.Transport, req *http.Request) *http.Response {
	t.Helper()
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func get(t testing.TB, tr *http.Transport) *http.Response {
	t.Helper()
	return send(t, tr, newRequest(t, "GET", "http://a/x", nil))
}

func TestDeadline(t *testing.T) {
	overBoth(t, "the client is answered while the handler runs on", func(t *testing.T, n *network, tr *http.Transport) {
		l := limit.NewLimiter(1)
		release, ended := make(chan struct{}), make(chan struct{})
		inner := handlerOf(t, NewServerStack().Limiter(l).Timeout(2*time.Second), func(w http.ResponseWriter, _ *http.Request) {
			defer close(ended)
			if w.Header().Get("X-Outer") != "1" {
				t.Error("the handler does not see what was set further out")
			}
			w.Header().Set("X-Inner", "1")
			w.Header().Set("Content-Encoding", "gzip")
			<-release
			w.Header().Set("X-Inner", "2")
			wantHandlerTimeout(t, w)
		})
		n.serve(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Outer", "1")
			inner.ServeHTTP(w, r)
		})
		start := time.Now()
		res := get(t, tr)
		wantTimedOut(t, res, start)
		if res.Header.Get("X-Inner") != "" || res.Header.Get("Content-Encoding") != "" || res.Header.Get("X-Outer") != "1" {
			t.Errorf("got %v", res.Header)
		}
		body := make([]byte, len(timedOutText))
		if _, err := io.ReadFull(res.Body, body); err != nil || string(body) != timedOutText {
			t.Errorf("%q, %v", body, err)
		}
		if res.ProtoMajor == 1 {
			wantRead(t, res.Body, "")
		}
		wantInFlight(t, l, 1, "answered, and the handler runs")
		time.Sleep(time.Hour)
		wantInFlight(t, l, 1, "an hour later")
		close(release)
		<-ended
		wantRead(t, res.Body, "")
		synctest.Wait()
		wantInFlight(t, l, 0, "the handler has returned")
	})

	overBoth(t, "it comes before what a handler says that heeds it", func(t *testing.T, n *network, tr *http.Transport) {
		l := limit.NewLimiter(1)
		host := n.serveStack(NewServerStack().Limiter(l).Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			if end, ok := ctx.Deadline(); !ok || time.Until(end) != 2*time.Second {
				t.Errorf("the deadline is in %v", time.Until(end))
			}
			<-ctx.Done()
			if err, cause := ctx.Err(), context.Cause(ctx); err != context.DeadlineExceeded || cause != timeout.Err {
				t.Errorf("ended with %v because of %v", err, cause)
			}
			http.Error(w, "sorry", http.StatusInternalServerError)
		})
		for range 20 {
			start := time.Now()
			res := get(t, tr)
			wantTimedOut(t, res, start)
			wantRead(t, res.Body, timedOutText)
			synctest.Wait()
			wantInFlight(t, l, 0, "answered")
			if n := host.opened.Load(); res.ProtoMajor == 2 && n != 1 {
				t.Errorf("%d connections", n)
			}
		}
	})

	overBoth(t, "it only ends the context of what is being answered", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begun, ")
			<-r.Context().Done()
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, "and finished")
		})
		start := time.Now()
		if res, body := fetch(t, tr); res.StatusCode != 200 || body != "begun, and finished" || time.Since(start) != 3*time.Second {
			t.Errorf("%d %q after %v", res.StatusCode, body, time.Since(start))
		}
	})

	overBoth(t, "informational responses are no answer", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(http.StatusProcessing)
			w.WriteHeader(http.StatusEarlyHints)
			<-r.Context().Done()
		})
		var hints []string
		req := newRequest(t, "GET", "http://a/x", nil)
		start := time.Now()
		res := send(t, tr, req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				hints = append(hints, fmt.Sprint(code, h["Link"], time.Since(start)))
				return nil
			},
		})))
		wantTimedOut(t, res, start)
		if got := strings.Join(hints, ", "); got != "102 [</style.css>] 0s, 103 [</style.css>] 0s" || res.Header["Link"] != nil {
			t.Errorf("hints %s, then %v", got, res.Header)
		}
	})

	overBoth(t, "it ends a wait in a buffer inside it, as a refusal", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(2*time.Second).Buffer(5).ConcurrencyLimit(0), func(http.ResponseWriter, *http.Request) { t.Error("called") })
		start := time.Now()
		res, _ := fetch(t, tr)
		wantAnswer(t, res, 503, "buffer: context done while waiting", "1")
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("after %v", took)
		}
	})

	overBoth(t, "it ends the reading of a body that does not come", func(t *testing.T, n *network, tr *http.Transport) {
		l := limit.NewLimiter(1)
		n.serveStack(NewServerStack().Limiter(l).Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if string(b) != "some" || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("read %q, %v", b, err)
			}
		})
		body, feed := io.Pipe()
		go func() { _, _ = io.WriteString(feed, "some") }()
		start := time.Now()
		res := send(t, tr, newRequest(t, "POST", "http://a/x", body))
		wantTimedOut(t, res, start)
		synctest.Wait()
		wantInFlight(t, l, 0, "answered")
		feed.Close()
	})

	overBoth(t, "it does not wait for a body that nobody reads", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		body, feed := io.Pipe()
		defer feed.Close()
		start := time.Now()
		wantTimedOut(t, send(t, tr, newRequest(t, "POST", "http://a/x", body)), start)
	})

	overBoth(t, "HEAD", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		start := time.Now()
		wantTimedOut(t, send(t, tr, newRequest(t, "HEAD", "http://a/x", nil)), start)
	})

	overBoth(t, "of two, the earlier counts", func(t *testing.T, n *network, tr *http.Transport) {
		for _, s := range []ServerStack{
			NewServerStack().Timeout(2 * time.Second).Timeout(time.Hour),
			NewServerStack().Timeout(time.Hour).Timeout(2 * time.Second),
			NewServerStack().Timeout(2 * time.Second).Timeout(2 * time.Second),
		} {
			h := n.serveStack(s, func(w http.ResponseWriter, r *http.Request) {
				if end, _ := r.Context().Deadline(); time.Until(end) != 2*time.Second {
					t.Errorf("%v: ends in %v", s, time.Until(end))
				}
				<-r.Context().Done()
			})
			start := time.Now()
			wantTimedOut(t, get(t, tr), start)
			h.Close()
			tr.CloseIdleConnections()
		}
	})

	overBoth(t, "an answer at the same time is whole", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Inner", "1")
			time.Sleep(2 * time.Second)
			_, _ = io.WriteString(w, "done")
		})
		for range 50 {
			res, body := fetch(t, tr)
			late := res.StatusCode == 504 && body == timedOutText && res.Header.Get("X-Inner") == ""
			inTime := res.StatusCode == 200 && body == "done" && res.Header.Get("X-Inner") == "1" && res.Header.Get(ReasonHeader) == ""
			if late == inTime {
				t.Errorf("%d %q %v", res.StatusCode, body, res.Header)
			}
		}
	})

	overBoth(t, "nothing happens if the handler is in time", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Inner", "1")
			time.Sleep(time.Second)
		})
		res, body := fetch(t, tr)
		if res.StatusCode != 200 || body != "" || res.Header.Get("X-Inner") != "1" {
			t.Errorf("%d %q %v", res.StatusCode, body, res.Header)
		}
		time.Sleep(time.Minute)
	})

	overBoth(t, "a client that has left is not answered", func(t *testing.T, n *network, tr *http.Transport) {
		ended := make(chan struct{})
		h := handlerOf(t, NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			if err := r.Context().Err(); err != context.Canceled {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Minute)
		})
		n.serve(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			l := &logging{ResponseWriter: w}
			h.ServeHTTP(l, r)
			if l.status != 0 {
				t.Errorf("answered %d", l.status)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := tr.RoundTrip(newRequest(t, "GET", "http://a/x", nil).WithContext(ctx)); err == nil {
			t.Error("answered")
		}
		<-ended
	})
}

// wantHandlerTimeout checks that nothing can be done with w any more.
func wantHandlerTimeout(t *testing.T, w http.ResponseWriter) {
	t.Helper()
	w.WriteHeader(http.StatusTeapot)
	w.WriteHeader(http.StatusEarlyHints)
	w.(http.Flusher).Flush()
	_, ofWrite := w.Write([]byte("late"))
	_, ofString := io.WriteString(w, "late")
	_, ofCopy := io.Copy(w, io.LimitReader(strings.NewReader("late"), 4))
	rc := http.NewResponseController(w)
	errs := map[string]error{
		"Write": ofWrite, "WriteString": ofString, "Copy": ofCopy, "Flush": rc.Flush(), "EnableFullDuplex": rc.EnableFullDuplex(),
		"SetReadDeadline": rc.SetReadDeadline(time.Time{}), "SetWriteDeadline": rc.SetWriteDeadline(time.Now()),
	}
	if h, ok := w.(http.Hijacker); ok {
		_, _, errs["Hijack"] = h.Hijack()
	}
	if p, ok := w.(http.Pusher); ok {
		errs["Push"] = p.Push("/style.css", nil)
	}
	for name, err := range errs {
		if err != http.ErrHandlerTimeout {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A client that does not take what the handler writes holds up the handler, and nobody else.
func TestDeadlineAndASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		ended := make(chan struct{})
		n.serveStack(NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			context.AfterFunc(r.Context(), func() {
				_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
			})
			start := time.Now()
			_, err := w.Write(make([]byte, 1<<20))
			if took := time.Since(start); err == nil || took != 3*time.Second {
				t.Errorf("%v after %v", err, took)
			}
		})
		conn, err := n.dial(t.Context(), "tcp", "a:80")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		<-ended
	})
}

// A client that does not even take the 504.
func TestDeadlineAndADeafClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		heard, returned := make(chan time.Time, 1), make(chan struct{})
		h := handlerOf(t, NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			heard <- time.Now()
		})
		n.serve(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			close(returned)
		})
		conn, err := n.dial(t.Context(), "tcp", "a:80")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if took := (<-heard).Sub(start); took != 2*time.Second {
			t.Errorf("the handler heard of it after %v", took)
		}
		time.Sleep(time.Minute)
		select {
		case <-returned:
			t.Error("the ResponseWriter is in use after the handler")
		default:
		}
		conn.Close()
		<-returned
	})
}

// A deadline that comes while the handler writes an informational response.
func TestDeadlineWhileInforming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &gatedWriter{ResponseRecorder: httptest.NewRecorder(), gate: make(chan struct{})}
		h := handlerOf(t, NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "x")
			w.WriteHeader(http.StatusEarlyHints)
			wantHandlerTimeout(t, w)
			if err := r.Context().Err(); err != context.DeadlineExceeded {
				t.Errorf("got %v", err)
			}
		})
		go func() {
			time.Sleep(3 * time.Second)
			close(w.gate)
		}()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 504 || !w.Flushed || w.Body.String() != timedOutText || w.Header().Get("Link") != "" {
			t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
		}
	})
}

// A gatedWriter lets informational responses wait, and does not record them.
type gatedWriter struct {
	*httptest.ResponseRecorder
	gate chan struct{}
}

func (w *gatedWriter) WriteHeader(status int) {
	if status < 200 {
		<-w.gate
		return
	}
	w.ResponseRecorder.WriteHeader(status)
}

// A deadline that comes between a buffer's hand-off and the handler.
func TestDeadlineBeforeTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		s := NewServerStack().Timeout(2*time.Second).Layer("slow", func(inner exchanger) exchanger { return sleepy{inner} })
		handlerOf(t, s, func(http.ResponseWriter, *http.Request) { t.Error("called") }).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		wantAnswer(t, w.Result(), 503, "timeout: deadline passed before the call", "1")
	})
}

type sleepy struct{ exchanger }

func (s sleepy) Call(ctx context.Context, permit belfry.Permit, x Exchange) (Exchange, error) {
	time.Sleep(time.Hour)
	return s.exchanger.Call(ctx, permit, x)
}

// What layers further out hear of a call that the deadline has answered.
func TestDeadlineAsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		s := NewServerStack().Layer("log", logged(&lines)).Timeout(2 * time.Second)
		h := handlerOf(t, s, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		if len(lines) != 1 || lines[0] != "GET Gateway Timeout http: Handler timeout: timeout: deadline exceeded" {
			t.Errorf("got %q", lines)
		}
	})
	if !errors.Is(errTimedOut, http.ErrHandlerTimeout) || !errors.Is(errTimedOut, timeout.Err) || !errors.Is(errTimedOut, context.DeadlineExceeded) {
		t.Error("the error is not what it says")
	}
}

func TestHijackedConnectionsAreExempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var lines []string
		s := NewServerStack().Layer("log", logged(&lines)).Timeout(2 * time.Second)
		ended := make(chan struct{})
		n.serveStack(s, func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			before, cancel := context.WithCancel(r.Context())
			defer cancel()
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if _, err := w.Write([]byte("x")); err != http.ErrHijacked {
				t.Errorf("Write: %v", err)
			}
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			rw.Flush()
			for range 2 {
				line, _ := rw.ReadString('\n')
				_, _ = rw.WriteString(line)
				rw.Flush()
				if _, limited := before.Deadline(); limited || before.Err() != nil || r.Context().Err() != nil {
					t.Errorf("the context ends: %v", r.Context().Err())
				}
			}
		})
		conn, err := n.dial(t.Context(), "tcp", "a:80")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		r := bufio.NewReader(conn)
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 101 {
			t.Fatalf("%v, %v", res, err)
		}
		for _, line := range []string{"one\n", "two\n"} {
			time.Sleep(time.Minute)
			_, _ = io.WriteString(conn, line)
			if got, err := r.ReadString('\n'); got != line {
				t.Errorf("%q, %v", got, err)
			}
		}
		<-ended
		synctest.Wait()
		if len(lines) != 1 || lines[0] != "GET Switching Protocols " {
			t.Errorf("got %q", lines)
		}
	})
}

// A handler that answers 101 has answered, although that is informational too.
func TestSwitchingProtocolsIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		w := httptest.NewRecorder()
		handlerOf(t, NewServerStack().Layer("log", logged(&lines)).Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusSwitchingProtocols)
			<-r.Context().Done()
		}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 101 || w.Body.Len() > 0 || len(lines) != 1 || lines[0] != "GET Switching Protocols " {
			t.Errorf("%d %q, %q", w.Code, w.Body, lines)
		}
	})
}

// A hijack that fails leaves everything as it was.
func TestHijackThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		handlerOf(t, NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			if _, _, err := w.(http.Hijacker).Hijack(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("got %v", err)
			}
			<-r.Context().Done()
		}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != 504 {
			t.Errorf("got %d", w.Code)
		}
	})
}

// A hijack that takes until after the deadline.
func TestHijackAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowHijacker{httptest.NewRecorder()}
		handlerOf(t, NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			if _, _, err := w.(http.Hijacker).Hijack(); err != nil {
				t.Error(err)
			}
		}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Body.Len() > 0 {
			t.Errorf("written to a connection that was taken over: %q", w.Body)
		}
	})
}

type slowHijacker struct{ *httptest.ResponseRecorder }

func (slowHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	time.Sleep(3 * time.Second)
	return nil, nil, nil
}

func TestDeadlinesContext(t *testing.T) {
	type key struct{}
	under := func(t *testing.T, caller context.Context, f func(ctx context.Context)) {
		r := httptest.NewRequest("GET", "/", nil).WithContext(caller)
		handlerOf(t, NewServerStack().Timeout(2*time.Second), func(_ http.ResponseWriter, r *http.Request) {
			f(r.Context())
		}).ServeHTTP(httptest.NewRecorder(), r)
	}
	check := func(t *testing.T, ctx context.Context, wantErr, wantCause error) {
		t.Helper()
		if err, cause := ctx.Err(), context.Cause(ctx); err != wantErr || cause != wantCause {
			t.Errorf("ended with %v because of %v, want %v because of %v", err, cause, wantErr, wantCause)
		}
		if ctx.Value(key{}) != "value" {
			t.Errorf("got the value %v", ctx.Value(key{}))
		}
	}
	bubble := func(name string, f func(t *testing.T, caller context.Context, leave context.CancelCauseFunc)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caller, leave := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
				f(t, caller, leave)
			})
		})
	}
	bubble("and what is derived from it end with the deadline", func(t *testing.T, caller context.Context, _ context.CancelCauseFunc) {
		under(t, caller, func(ctx context.Context) {
			derived, cancel := context.WithTimeout(context.WithValue(ctx, key{}, "value"), time.Hour)
			defer cancel()
			check(t, ctx, nil, nil)
			time.Sleep(2*time.Second - 1)
			check(t, derived, nil, nil)
			<-derived.Done()
			check(t, derived, context.DeadlineExceeded, timeout.Err)
			check(t, ctx, context.DeadlineExceeded, timeout.Err)
			later, cancel := context.WithCancel(ctx)
			defer cancel()
			check(t, later, context.DeadlineExceeded, timeout.Err)
			check(t, context.WithoutCancel(ctx), nil, nil)
		})
	})
	bubble("end with the caller's", func(t *testing.T, caller context.Context, leave context.CancelCauseFunc) {
		why := errors.New("left")
		under(t, caller, func(ctx context.Context) {
			derived, cancel := context.WithCancel(ctx)
			defer cancel()
			leave(why)
			<-derived.Done()
			check(t, derived, context.Canceled, why)
			time.Sleep(time.Minute)
			check(t, ctx, context.Canceled, why)
		})
	})
	bubble("end with the caller's own deadline", func(t *testing.T, caller context.Context, _ context.CancelCauseFunc) {
		early, cancel := context.WithTimeout(caller, time.Second)
		defer cancel()
		under(t, early, func(ctx context.Context) {
			if end, _ := ctx.Deadline(); time.Until(end) != time.Second {
				t.Errorf("ends in %v", time.Until(end))
			}
			<-ctx.Done()
			check(t, ctx, context.DeadlineExceeded, context.DeadlineExceeded)
		})
	})
	bubble("have ended before", func(t *testing.T, caller context.Context, leave context.CancelCauseFunc) {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		leave(nil)
		ctx, d := newDeadline(caller, time.Second, newGuard(w, r, true))
		<-ctx.Done()
		check(t, ctx, context.Canceled, context.Canceled)
		d.stop()
	})
	bubble("do not outlive the call", func(t *testing.T, caller context.Context, _ context.CancelCauseFunc) {
		var own context.Context
		under(t, caller, func(ctx context.Context) { own = ctx })
		if own.Err() != context.Canceled {
			t.Errorf("got %v", own.Err())
		}
	})
	t.Run("cost no goroutine", func(t *testing.T) {
		under(t, t.Context(), func(ctx context.Context) {
			before := runtime.NumGoroutine()
			for range 10 {
				_, cancel := context.WithCancel(context.WithValue(ctx, key{}, 1))
				defer cancel()
			}
			if n := runtime.NumGoroutine() - before; n > 0 {
				t.Errorf("%d goroutines for 10 contexts", n)
			}
		})
	})
}

// The caller's context is not used when the call is over.
func TestDeadlineWaitsForTheCallersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		caller := &heldContext{Context: ctx, gate: make(chan struct{})}
		_, d := newDeadline(caller, time.Hour, newGuard(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil), true))
		cancel()
		synctest.Wait()
		stopped := make(chan struct{})
		go func() {
			d.stop()
			close(stopped)
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("the call is over, and the caller's context in use")
		default:
		}
		close(caller.gate)
		<-stopped
	})
}

// A heldContext lets Err wait.
type heldContext struct {
	context.Context
	gate chan struct{}
}

func (c *heldContext) Err() error {
	<-c.gate
	return c.Context.Err()
}

// A ResponseWriter of somebody else that panics in the timer's goroutine does so in the handler's, where it is recovered from.
func TestDeadlinePanicsInTheHandlersGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handlerOf(t, NewServerStack().Timeout(2*time.Second), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		v := panicOf(func() { h.ServeHTTP(panicky{httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil)) })
		if v != http.ErrAbortHandler {
			t.Errorf("got %v", v)
		}
	})
}

type panicky struct{ *httptest.ResponseRecorder }

func (panicky) WriteHeader(int) { panic(http.ErrAbortHandler) }

// Handlers that change their header all the time do not disturb the deadline; under the race detector.
func TestDeadlineAndTheHandlersHeader(t *testing.T) {
	overBoth(t, "header", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			for i := 0; r.Context().Err() == nil || i < 1000; i++ {
				w.Header().Set(fmt.Sprint("X-", i%10), "x")
				if i == 100 {
					time.Sleep(2 * time.Second)
				}
			}
		})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if res, body := fetch(t, tr); res.StatusCode != 504 || body != timedOutText || res.Header.Get("X-0") != "" {
					t.Errorf("%d %q %v", res.StatusCode, body, res.Header)
				}
			})
		}
		wg.Wait()
	})
}
