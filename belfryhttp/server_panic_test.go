package belfryhttp

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/limit"
)

// A lines is what a server logs to.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func panicWith(v any) { panic(v) }

func TestPanicOfAHandler(t *testing.T) {
	for name, s := range stacks() {
		t.Run(name+": is what the server recovers", func(t *testing.T) {
			for _, v := range []any{http.ErrAbortHandler, "boom"} {
				l := limit.NewLimiter(1)
				h := handlerOf(t, s.Limiter(l), func(http.ResponseWriter, *http.Request) { panic(v) })
				w := httptest.NewRecorder()
				if got := panicOf(func() { h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)) }); got != v {
					t.Errorf("got %v, want %v", got, v)
				}
				if w.Body.Len() > 0 || w.Flushed {
					t.Errorf("written %q", w.Body)
				}
				wantInFlight(t, l, 0, "after a panic")
			}
		})
		for protocol, h2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
			t.Run(name+": ends the request over "+protocol, func(t *testing.T) {
				l := limit.NewLimiter(1)
				logged := make(lines, 10)
				server := httptest.NewUnstartedServer(handlerOf(t, s.Limiter(l), func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/abort" {
						panicWith(http.ErrAbortHandler)
					}
					panicWith("boom")
				}))
				server.EnableHTTP2 = h2
				server.Config.ErrorLog = log.New(logged, "", 0)
				server.StartTLS()
				for _, path := range []string{"/abort", "/boom"} {
					// Not to be sent again.
					req, err := http.NewRequest("POST", server.URL+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					res, err := server.Client().Do(req)
					if err == nil {
						t.Errorf("%s: %s", path, res.Status)
						res.Body.Close()
					} else if text := err.Error(); !strings.Contains(text, "EOF") && !strings.Contains(text, "stream error") {
						t.Errorf("%s: %v", path, err)
					}
				}
				text := <-logged
				if !strings.Contains(text, "panic serving") || !strings.Contains(text, "boom") || !strings.Contains(text, "belfryhttp.panicWith") {
					t.Errorf("logged %s", text)
				}
				server.Close()
				if len(logged) > 0 {
					t.Errorf("logged %s", <-logged)
				}
				wantInFlight(t, l, 0, "after panics")
			})
		}
	}
}

func TestPanicOfAHandlerAfterTheDeadline(t *testing.T) {
	overBoth(t, "the client has its answer", func(t *testing.T, n *network, tr *http.Transport) {
		l := limit.NewLimiter(1)
		n.serveStack(NewServerStack().Limiter(l).Timeout(2*time.Second), func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			time.Sleep(time.Second)
			panic(http.ErrAbortHandler)
		})
		start := time.Now()
		res := get(t, tr)
		wantTimedOut(t, res, start)
		body := make([]byte, len(timedOutText))
		if _, err := io.ReadFull(res.Body, body); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		wantInFlight(t, l, 0, "after the panic")
	})
}

// Goexit is not a panic, and leaves nothing behind either.
func TestGoexitOfAHandler(t *testing.T) {
	for name, s := range stacks() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limit.NewLimiter(1)
				h := handlerOf(t, s.Limiter(l), func(http.ResponseWriter, *http.Request) { runtime.Goexit() })
				done := make(chan struct{})
				go func() {
					defer close(done)
					h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
				}()
				<-done
				wantInFlight(t, l, 0, "after Goexit")
			})
		})
	}
}

// A layer that recovers can answer.
func TestPanicThatALayerRecovers(t *testing.T) {
	for name, s := range map[string]ServerStack{
		"outside the deadline": NewServerStack().Layer("recover", recovering).Timeout(time.Second),
		"inside":               NewServerStack().Timeout(time.Second).Layer("recover", recovering),
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			handlerOf(t, s, func(http.ResponseWriter, *http.Request) { panic("boom") }).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != 500 || w.Body.String() != "recovered\n" {
				t.Errorf("%d %q", w.Code, w.Body)
			}
		})
	}
}
