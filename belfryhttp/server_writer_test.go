package belfryhttp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What a handler may ask a ResponseWriter for.
func abilities(w http.ResponseWriter) (names []string) {
	for name, has := range map[string]bool{
		"Flusher":      is[http.Flusher](w),
		"FlushError":   is[interface{ FlushError() error }](w),
		"Hijacker":     is[http.Hijacker](w),
		"Pusher":       is[http.Pusher](w),
		"ReaderFrom":   is[io.ReaderFrom](w),
		"StringWriter": is[io.StringWriter](w),
		"FullDuplex":   is[interface{ EnableFullDuplex() error }](w),
		"Deadlines": is[interface {
			SetReadDeadline(time.Time) error
			SetWriteDeadline(time.Time) error
		}](w),
	} {
		if has {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func TestWriterCanDoWhatTheServersCan(t *testing.T) {
	overBoth(t, "abilities", func(t *testing.T, n *network, tr *http.Transport) {
		var bare, guarded []string
		h := handlerOf(t, NewServerStack().Timeout(time.Hour), func(w http.ResponseWriter, _ *http.Request) { guarded = abilities(w) })
		n.serve(func(w http.ResponseWriter, r *http.Request) {
			bare = abilities(w)
			h.ServeHTTP(w, r)
		})
		fetch(t, tr)
		if len(bare) < 5 || !slices.Equal(bare, guarded) {
			t.Errorf("net/http's: %v\nours:       %v", bare, guarded)
		}
	})
	overBoth(t, "by an http.ResponseController, through what is further out", func(t *testing.T, n *network, tr *http.Transport) {
		h := handlerOf(t, NewServerStack().Timeout(time.Hour), func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			for name, err := range map[string]error{
				"SetReadDeadline":  rc.SetReadDeadline(time.Now().Add(time.Minute)),
				"SetWriteDeadline": rc.SetWriteDeadline(time.Now().Add(time.Minute)),
				"EnableFullDuplex": rc.EnableFullDuplex(),
				"Flush":            rc.Flush(),
			} {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			_, _, err := rc.Hijack()
			if r.ProtoMajor == 1 && err != nil || r.ProtoMajor == 2 && !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("Hijack: %v", err)
			}
			panic(http.ErrAbortHandler)
		})
		n.serve(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&logging{ResponseWriter: w}, r) })
		res := get(t, tr)
		if res.StatusCode != 200 {
			t.Errorf("got %d", res.StatusCode)
		}
	})
	overBoth(t, "deadlines are the server's", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(time.Hour), func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			rc := http.NewResponseController(w)
			_ = rc.SetReadDeadline(start.Add(time.Minute))
			_, err := r.Body.Read(make([]byte, 1))
			if took := time.Since(start); took != time.Minute || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Read: %v after %v", err, took)
			}
			_ = rc.SetWriteDeadline(time.Now().Add(time.Minute))
			for err = nil; err == nil; {
				_, err = w.Write(make([]byte, 1<<20))
			}
			if took := time.Since(start); took != 2*time.Minute {
				t.Errorf("Write: %v after %v", err, took)
			}
		})
		body, feed := io.Pipe()
		defer feed.Close()
		res := send(t, tr, newRequest(t, "POST", "http://a/x", body))
		time.Sleep(3 * time.Minute)
		if _, err := io.Copy(io.Discard, res.Body); err == nil {
			t.Error("all was written")
		}
	})
	overBoth(t, "full duplex", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(time.Hour), func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			_ = rc.EnableFullDuplex()
			word := make([]byte, 3)
			for err := rc.Flush(); err == nil; err = rc.Flush() {
				if _, err := io.ReadFull(r.Body, word); err != nil {
					return
				}
				_, _ = w.Write(word)
			}
		})
		body, feed := io.Pipe()
		res := send(t, tr, newRequest(t, "POST", "http://a/x", body))
		for _, word := range []string{"one", "two"} {
			_, _ = io.WriteString(feed, word)
			got := make([]byte, 3)
			if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != word {
				t.Errorf("%q, %v", got, err)
			}
		}
		feed.Close()
		wantRead(t, res.Body, "")
	})
}

func TestWriterFlushes(t *testing.T) {
	overBoth(t, "events arrive before the handler ends", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().LoadShed().Timeout(time.Hour), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n", i)
				w.(http.Flusher).Flush()
				time.Sleep(time.Second)
			}
		})
		start := time.Now()
		res := get(t, tr)
		lines := bufio.NewScanner(res.Body)
		for i := range 3 {
			if lines.Scan(); lines.Text() != fmt.Sprint("data: ", i) || time.Since(start) != time.Duration(i)*time.Second {
				t.Errorf("%q after %v", lines.Text(), time.Since(start))
			}
		}
		if lines.Scan() || lines.Err() != nil {
			t.Errorf("%q, %v", lines.Text(), lines.Err())
		}
	})
	overBoth(t, "a flush is an answer", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			_, _ = io.WriteString(w, "done")
		})
		if res, body := fetch(t, tr); res.StatusCode != 200 || body != "done" {
			t.Errorf("%d %q", res.StatusCode, body)
		}
	})
}

func TestWriterSendsTrailers(t *testing.T) {
	for name, s := range map[string]ServerStack{"watched": NewServerStack().Layer("log", logged(new([]string))), "bounded": NewServerStack().Timeout(time.Hour)} {
		overBoth(t, name, func(t *testing.T, n *network, tr *http.Transport) {
			h := handlerOf(t, s, func(w http.ResponseWriter, _ *http.Request) {
				h := w.Header()
				h.Set("Trailer", "x-declared, X-Absent")
				h.Add("Trailer", "X-Also")
				h.Set("X-Header", "before")
				_, _ = io.WriteString(w, "do")
				h.Set("X-Declared", "1")
				h.Add("X-Also", "2")
				h.Add("X-Also", "3")
				h.Set(http.TrailerPrefix+"X-Undeclared", "4")
				h.Set("X-Header", "after")
				h.Set("X-Late", "5")
				_, _ = io.WriteString(w, "ne")
			})
			var after http.Header
			n.serve(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r)
				after = w.Header().Clone()
			})
			res, body := fetch(t, tr)
			if body != "done" || res.Header.Get("X-Header") != "before" || res.Header.Get("X-Late") != "" {
				t.Errorf("%q %v", body, res.Header)
			}
			want := http.Header{"X-Declared": {"1"}, "X-Also": {"2", "3"}, "X-Undeclared": {"4"}}
			for name, values := range res.Trailer {
				if values == nil {
					delete(res.Trailer, name) // announced, and not sent
				}
			}
			if !maps.EqualFunc(res.Trailer, want, slices.Equal) {
				t.Errorf("trailers %v", res.Trailer)
			}
			if name == "bounded" && (after.Get("X-Header") != "before" || after.Get("X-Late") != "") {
				t.Errorf("what was sent already is changed for those further out: %v", after)
			}
		})
	}
}

func TestWriterHeader(t *testing.T) {
	overBoth(t, "what is set further out is there, and can be taken back", func(t *testing.T, n *network, tr *http.Transport) {
		h := handlerOf(t, NewServerStack().Timeout(time.Hour), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Del("X-Gone")
			w.Header().Add("X-Kept", "2")
			w.Header()["Date"] = nil
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK)
		})
		n.serve(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Gone", "1")
			w.Header().Set("X-Kept", "1")
			h.ServeHTTP(w, r)
		})
		res, _ := fetch(t, tr)
		if res.StatusCode != http.StatusTeapot || res.Header["X-Gone"] != nil || res.Header["Date"] != nil || !slices.Equal(res.Header["X-Kept"], []string{"1", "2"}) {
			t.Errorf("%d %v", res.StatusCode, res.Header)
		}
	})
	overBoth(t, "informational responses", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(time.Hour), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "1")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			w.Header().Set("X-Final", "1")
		})
		var hint http.Header
		req := newRequest(t, "GET", "http://a/x", nil)
		res := send(t, tr, req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { hint = http.Header(h); return nil },
		})))
		if hint.Get("Link") != "1" || len(hint) != 1 || res.Header["Link"] != nil || res.Header.Get("X-Final") != "1" {
			t.Errorf("%v, then %v", hint, res.Header)
		}
	})
	t.Run("an informational one is not of what changes later", func(t *testing.T) {
		for version, want := range map[int]string{1: "", 2: "0"} {
			w := &gatedWriter{ResponseRecorder: httptest.NewRecorder(), gate: make(chan struct{})}
			close(w.gate)
			r := httptest.NewRequest("GET", "/", nil)
			r.ProtoMajor = version
			handlerOf(t, NewServerStack().Timeout(time.Hour), func(h http.ResponseWriter, _ *http.Request) {
				h.WriteHeader(http.StatusEarlyHints)
				// What makes net/http send a copy over HTTP/2.
				if got := w.Header().Get("Content-Length"); got != want {
					t.Errorf("HTTP/%d: %q", version, got)
				}
			}).ServeHTTP(w, r)
			if w.Header()["Content-Length"] != nil {
				t.Errorf("HTTP/%d: then %v", version, w.Header())
			}
		}
	})
	t.Run("a status that is none panics as in net/http", func(t *testing.T) {
		h := handlerOf(t, NewServerStack().Timeout(time.Hour), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(0) })
		if v := panicOf(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) }); v == nil {
			t.Error("no panic")
		}
	})
}

func TestWriterReadsFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	text := strings.Repeat("0123456789abcdef", 1<<14)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, serve := range map[string]http.HandlerFunc{
		"ServeFile": func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) },
		"Copy of a file": func(w http.ResponseWriter, _ *http.Request) {
			f, err := os.Open(file)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			if n, err := io.Copy(w, f); n != int64(len(text)) || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		},
		"Copy of a part": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			n, err := io.Copy(w, io.LimitReader(strings.NewReader(text+"more"), int64(len(text))))
			if n != int64(len(text)) || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlerOf(t, NewServerStack().Timeout(time.Hour), serve)
			var handed atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(&countingReadFrom{w, &handed}, r)
			}))
			defer server.Close()
			res, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if ct := res.Header.Get("Content-Type"); ct != "text/plain; charset=utf-8" {
				t.Errorf("taken for %s", ct)
			}
			wantRead(t, res.Body, text)
			server.Close() // the handler has returned
			if n := handed.Load(); n < int64(len(text)-sniffed) {
				t.Errorf("%d bytes of %d went by the server's ReadFrom", n, len(text))
			}
		})
	}
	overBoth(t, "a source that does not come is no answer", func(t *testing.T, n *network, tr *http.Transport) {
		source, feed := io.Pipe()
		n.serveStack(NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
			if n, err := io.Copy(w, source); n != 0 || err != http.ErrHandlerTimeout {
				t.Errorf("%d, %v", n, err)
			}
		})
		start := time.Now()
		wantTimedOut(t, get(t, tr), start)
		_, _ = io.WriteString(feed, "late")
	})
	t.Run("a source of nothing is no answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := httptest.NewRecorder()
			handlerOf(t, NewServerStack().Timeout(2*time.Second), func(w http.ResponseWriter, r *http.Request) {
				if n, err := io.Copy(w, onlyReader{strings.NewReader("")}); n != 0 || err != nil {
					t.Errorf("%d, %v", n, err)
				}
				if n, err := w.(io.ReaderFrom).ReadFrom(errReader{os.ErrClosed}); n != 0 || err != os.ErrClosed {
					t.Errorf("%d, %v", n, err)
				}
				<-r.Context().Done()
			}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != 504 {
				t.Errorf("got %d", w.Code)
			}
		})
	})
}

type onlyReader struct{ io.Reader }

// A countingReadFrom counts what the server takes by ReadFrom.
type countingReadFrom struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *countingReadFrom) ReadFrom(src io.Reader) (int64, error) {
	n, err := c.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
	c.n.Add(n)
	return n, err
}

func TestExpectContinue(t *testing.T) {
	upload := func(t *testing.T, tr *http.Transport) (res *http.Response, unsent func() int, continued int) {
		tr.ExpectContinueTimeout = time.Hour
		text := strings.NewReader(strings.Repeat("x", 1<<20))
		req := newRequest(t, "PUT", "http://a/x", onlyReader{text})
		req.Header.Set("Expect", "100-continue")
		res = send(t, tr, req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got100Continue: func() { continued++ },
		})))
		return res, text.Len, continued
	}
	for name, s := range stacks() {
		overBoth(t, name+": a request that is admitted is told to go on", func(t *testing.T, n *network, tr *http.Transport) {
			n.serveStack(s, func(w http.ResponseWriter, r *http.Request) {
				n, err := io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, n, err)
			})
			start := time.Now()
			res, _, continued := upload(t, tr)
			wantRead(t, res.Body, fmt.Sprint(1<<20, nil))
			if res.StatusCode != 200 || continued != 1 || time.Since(start) != 0 {
				t.Errorf("%d, told to go on %d times, after %v", res.StatusCode, continued, time.Since(start))
			}
		})
		overBoth(t, name+": one that is refused keeps its body", func(t *testing.T, n *network, tr *http.Transport) {
			n.serveStack(s.Layer("full", func(exchanger) exchanger { return refusing{} }), func(http.ResponseWriter, *http.Request) { t.Error("called") })
			start := time.Now()
			res, unsent, continued := upload(t, tr)
			wantAnswer(t, res, 429, "rate: too many", "3")
			if continued != 0 || unsent() != 1<<20 || res.Close != (res.ProtoMajor == 1) || time.Since(start) != 0 {
				t.Errorf("told to go on %d times, %d bytes kept, close %v, after %v", continued, unsent(), res.Close, time.Since(start))
			}
		})
	}
	overBoth(t, "one that times out unread keeps its body", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(2*time.Second), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		start := time.Now()
		res, unsent, continued := upload(t, tr)
		wantTimedOut(t, res, start)
		if continued != 0 || unsent() != 1<<20 {
			t.Errorf("told to go on %d times, %d bytes kept", continued, unsent())
		}
	})
}

func TestMaxBytesReaderInside(t *testing.T) {
	overBoth(t, "413", func(t *testing.T, n *network, tr *http.Transport) {
		n.serveStack(NewServerStack().Timeout(time.Hour), func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 10)); err != nil {
				WriteError(w, err)
			}
		})
		res := send(t, tr, newRequest(t, "PUT", "http://a/x", strings.NewReader(strings.Repeat("x", 1<<10))))
		wantAnswer(t, res, 413, "request body too long", "")
	})
}
