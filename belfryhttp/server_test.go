package belfryhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/limit"
)

// handlerOf returns h behind s, which has no mistakes.
func handlerOf(t testing.TB, s ServerStack, h http.HandlerFunc) http.Handler {
	t.Helper()
	handler, err := s.Handler(h)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// serveStack serves h behind s at a:80.
func (n *network) serveStack(s ServerStack, h http.HandlerFunc) *host {
	n.t.Helper()
	return n.serve(handlerOf(n.t, s, h).ServeHTTP)
}

// fetch returns the response to a GET, with its whole body.
func fetch(t testing.TB, tr *http.Transport) (*http.Response, string) {
	t.Helper()
	res, err := tr.RoundTrip(newRequest(t, "GET", "http://a/x", nil))
	if err != nil {
		t.Error(err)
		return &http.Response{}, ""
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	res.Body.Close()
	return res, string(body)
}

// wantAnswer checks an answer that a stack has given itself.
func wantAnswer(t testing.TB, res *http.Response, status int, reason, retryAfter string) {
	t.Helper()
	if res.StatusCode != status || res.Header.Get(ReasonHeader) != reason || res.Header.Get("Retry-After") != retryAfter {
		t.Errorf("got %d, reason %q, retry after %q; want %d, %q, %q", res.StatusCode,
			res.Header.Get(ReasonHeader), res.Header.Get("Retry-After"), status, reason, retryAfter)
	}
}

// wantInFlight checks how many requests hold a place.
func wantInFlight(t testing.TB, l *limit.Limiter, want int, when string) {
	t.Helper()
	if s := l.Stats(); s.InFlight != want || s.Reserved != 0 {
		t.Errorf("%s: %d in flight and %d reserved, want %d", when, s.InFlight, s.Reserved, want)
	}
}

// Both kinds of stacks: one that leaves the ResponseWriter alone, and one that watches it.
func stacks() map[string]ServerStack {
	return map[string]ServerStack{
		"plain":   NewServerStack().LoadShed().Buffer(5),
		"guarded": NewServerStack().LoadShed().Buffer(5).Timeout(time.Hour),
	}
}

// slowly is a handler that takes a second, and counts.
type slowly struct {
	running, most, ran atomic.Int32
}

func (s *slowly) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	n := s.running.Add(1)
	defer s.running.Add(-1)
	s.ran.Add(1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	time.Sleep(time.Second)
	_, _ = io.WriteString(w, "done")
}

func TestServerUnderLoad(t *testing.T) {
	stack := NewServerStack().LoadShed().Buffer(500).ConcurrencyLimit(50)
	for name, s := range map[string]ServerStack{"": stack, ", with a timeout": stack.Timeout(2 * time.Second)} {
		overBoth(t, "S5 600 one after the other: 50 run, 500 queue, 50 are refused at once"+name, func(t *testing.T, n *network, tr *http.Transport) {
			var h slowly
			n.serveStack(s, h.ServeHTTP)
			start := time.Now()
			var wg sync.WaitGroup
			for i := range 600 {
				wg.Go(func() {
					res, body := fetch(t, tr)
					took := time.Since(start)
					if i < 550 {
						if res.StatusCode != 200 || body != "done" || took != time.Duration(1+i/50)*time.Second {
							t.Errorf("request %d: %d %q after %v", i+1, res.StatusCode, body, took)
						}
						return
					}
					wantAnswer(t, res, 503, "buffer: full", "1")
					if took != 0 {
						t.Errorf("request %d was refused after %v", i+1, took)
					}
				})
				synctest.Wait()
			}
			if n := h.running.Load(); n != 50 {
				t.Errorf("%d run", n)
			}
			wg.Wait()
			if h.most.Load() != 50 || h.ran.Load() != 550 {
				t.Errorf("%d ran, %d at a time", h.ran.Load(), h.most.Load())
			}
		})
		overBoth(t, "600 at once: none but the refused is lost"+name, func(t *testing.T, n *network, tr *http.Transport) {
			var h slowly
			n.serveStack(s, h.ServeHTTP)
			start := time.Now()
			var refused atomic.Int32
			var wg sync.WaitGroup
			for range 600 {
				wg.Go(func() {
					res, _ := fetch(t, tr)
					if res.StatusCode == 200 {
						return
					}
					refused.Add(1)
					wantAnswer(t, res, 503, "buffer: full", "1")
					if took := time.Since(start); took != 0 {
						t.Errorf("refused after %v", took)
					}
				})
			}
			wg.Wait()
			if h.most.Load() != 50 || refused.Load() < 50 || h.ran.Load()+refused.Load() != 600 {
				t.Errorf("%d ran, %d at a time, %d were refused", h.ran.Load(), h.most.Load(), refused.Load())
			}
		})
	}
}

func TestServerRefuses(t *testing.T) {
	rate := func(inner exchanger) exchanger { return refusing{inner} }
	for name, c := range map[string]struct {
		stack              ServerStack
		status             int
		reason, retryAfter string
	}{
		"a limit of none":         {NewServerStack().LoadShed().ConcurrencyLimit(0), 503, "limit: full", "1"},
		"a room without patience": {NewServerStack().Buffer(1, buffer.Config{MaxWait: time.Second}).ConcurrencyLimit(0), 503, "buffer: queued too long", "1"},
		"a rate":                  {NewServerStack().Layer("rate", rate), 429, "rate: too many", "3"},
		"a rate that is not there now, under a shed": {NewServerStack().LoadShed().Layer("rate", rate).Timeout(time.Second), 429, "rate: too many", "3"},
	} {
		overBoth(t, name, func(t *testing.T, n *network, tr *http.Transport) {
			n.serveStack(c.stack, func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
			res, body := fetch(t, tr)
			wantAnswer(t, res, c.status, c.reason, c.retryAfter)
			if !strings.Contains(body, c.reason) {
				t.Errorf("says %q", body)
			}
		})
	}
}

// refusing stands for a rate limit.
type refusing struct{ exchanger }

func (refusing) Acquire(context.Context) (belfry.Permit, error) {
	return belfry.Permit{}, &belfry.Rejection{Layer: "rate", Reason: "too many", RetryAfter: 2500 * time.Millisecond, Err: belfry.ErrNotReady}
}

func TestClientThatLeavesTheQueue(t *testing.T) {
	for name, s := range stacks() {
		overBoth(t, name+": frees its seat at once", func(t *testing.T, n *network, tr *http.Transport) {
			l := limit.NewLimiter(1)
			release := make(chan struct{})
			var statuses sync.Map
			inner := handlerOf(t, s.Limiter(l), func(http.ResponseWriter, *http.Request) { <-release })
			n.serve(func(w http.ResponseWriter, r *http.Request) {
				logged := &logging{ResponseWriter: w}
				inner.ServeHTTP(logged, r)
				statuses.Store(r.URL.Path, logged.status)
			})
			var wg sync.WaitGroup
			defer wg.Wait()
			wg.Go(func() { fetch(t, tr) })
			synctest.Wait()
			ctx, leave := context.WithCancel(t.Context())
			wg.Go(func() {
				res, err := tr.RoundTrip(newRequest(t, "GET", "http://a/leaves", nil).WithContext(ctx))
				if err == nil {
					t.Errorf("got %v", res)
				}
			})
			synctest.Wait()
			if n := l.Stats().Waiting; n != 1 {
				t.Errorf("%d wait", n)
			}
			leave()
			synctest.Wait()
			if n := l.Stats().Waiting; n != 0 {
				t.Errorf("%d wait after the client has left", n)
			}
			wantInFlight(t, l, 1, "after the client has left")
			if status, _ := statuses.Load("/leaves"); status != StatusClientGone {
				t.Errorf("logged as %v", status)
			}
			close(release)
		})
	}
}

// logging is how a middleware further out takes note of the status.
type logging struct {
	http.ResponseWriter
	status int
}

func (l *logging) WriteHeader(status int) {
	l.status = status
	l.ResponseWriter.WriteHeader(status)
}

func (l *logging) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func TestServerStackMistakes(t *testing.T) {
	s := NewServerStack().Buffer(0).ConcurrencyLimit(-1).Timeout(0).Layer("mine", nil).Limiter(nil)
	h, err := s.Handler(nil)
	if h != nil || err == nil {
		t.Fatalf("got %v, %v", h, err)
	}
	for _, want := range []string{
		"handler must not be nil", "layer 1, buffer: ", "layer 2, concurrency limit: ", "layer 3, timeout: timeout: duration must be above 0, got 0s",
		"layer 4, mine: ", "layer 5, concurrency limit: ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if _, err := (ServerStack{}).Handler(http.NotFoundHandler()); err == nil {
		t.Error("a stack that was not made is built")
	}
}

func TestServerStackIsAValue(t *testing.T) {
	base := NewServerStack().LoadShed().Buffer(500)
	a := base.ConcurrencyLimit(50).Timeout(2 * time.Second)
	b := base.Layer("mine", logged(new([]string)))
	for s, want := range map[string]string{
		base.String(): "load shed → buffer(500, FIFO)",
		a.String():    "load shed → buffer(500, FIFO) → concurrency limit(50) → timeout(2s)",
		b.String():    "load shed → buffer(500, FIFO) → mine",
	} {
		if s != want {
			t.Errorf("got %s, want %s", s, want)
		}
	}
	if base.watched || !a.bounded || b.bounded {
		t.Error("descendants disturb each other")
	}
}

func TestServerStackOfNothing(t *testing.T) {
	w := httptest.NewRecorder()
	handlerOf(t, NewServerStack(), func(got http.ResponseWriter, _ *http.Request) {
		if got != http.ResponseWriter(w) {
			t.Errorf("the handler got %T", got)
		}
	}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
}

// logged returns a layer that notes what comes of each request.
func logged(lines *[]string) belfry.Layer[Exchange, Exchange] {
	return func(inner exchanger) exchanger {
		return belfry.Around(inner, func(ctx context.Context, x Exchange, next *belfry.Next[Exchange, Exchange]) (Exchange, error) {
			res, err := next.Call(ctx, x)
			line := x.Request().Method + " " + http.StatusText(x.Status())
			if err == nil {
				line += " " + res.Request().Pattern
			} else {
				line += " " + err.Error()
			}
			*lines = append(*lines, line)
			return res, err
		})
	}
}

func TestLayerOfOnesOwn(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /teapot/{size}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	mux.HandleFunc("GET /twice", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(nil)
		w.WriteHeader(http.StatusBadGateway)
	})
	var lines []string
	stack := NewServerStack().Layer("log", logged(&lines))
	auth := func(inner exchanger) exchanger {
		return belfry.Around(inner, func(ctx context.Context, x Exchange, next *belfry.Next[Exchange, Exchange]) (Exchange, error) {
			switch user, _, _ := x.Request().BasicAuth(); user {
			case "":
				http.Error(x.ResponseWriter(), "who?", http.StatusUnauthorized)
				return x, nil
			case "torn":
				http.Error(x.ResponseWriter(), "who?", http.StatusUnauthorized)
				return x, errors.New("torn")
			case "broken":
				return x, &belfry.Rejection{Layer: "auth", Reason: "down"}
			case "late":
				res, err := next.Call(ctx, x)
				if err == nil && res.Status() == http.StatusOK {
					http.Error(x.ResponseWriter(), "sorry", http.StatusGone)
				}
				return res, err
			default:
				r := x.Request().Clone(ctx)
				r.URL.Path = strings.TrimPrefix(r.URL.Path, "/as/"+user)
				return next.Call(ctx, x.WithRequest(r))
			}
		})
	}
	for name, s := range map[string]ServerStack{"watched": stack.Layer("auth", auth), "bounded": stack.Timeout(time.Hour).Layer("auth", auth)} {
		t.Run(name, func(t *testing.T) {
			h, err := s.Handler(mux)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				user, path string
				status     int
				line       string
			}{
				{"", "/", 401, "GET Unauthorized "},
				{"ann", "/as/ann/", 200, "GET OK GET /{$}"},
				{"ann", "/teapot/2", 418, "GET I'm a teapot GET /teapot/{size}"},
				{"ann", "/twice", 200, "GET OK GET /twice"},
				{"ann", "/no", 404, "GET Not Found "},
				{"broken", "/", 503, "GET  auth: down"},
				{"torn", "/", 401, "GET Unauthorized torn"},
				{"late", "/", 410, "GET Gone GET /{$}"},
			} {
				lines = nil
				r := httptest.NewRequest("GET", c.path, nil)
				if c.user != "" {
					r.SetBasicAuth(c.user, "")
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != c.status || len(lines) != 1 || lines[0] != c.line || strings.Count(w.Body.String(), "\n") > 1 {
					t.Errorf("%s %s: %d %q, %q", c.user, c.path, w.Code, w.Body, lines)
				}
			}
		})
	}
}

func TestServerSemantics(t *testing.T) {
	sem := ServerSemantics()
	x := func(status int) Exchange { return Exchange{guard: &guard{status: status, phase: answered}} }
	for status, kind := range map[int]belfry.Kind{
		0: belfry.Success, 101: belfry.Success, 200: belfry.Success, 404: belfry.Success, 429: belfry.Success, 499: belfry.Success,
		500: belfry.Failure, 501: belfry.Success, 503: belfry.Failure, 505: belfry.Success, 599: belfry.Failure,
	} {
		if out := sem.Judge(x(status), nil); out != (belfry.Outcome{Kind: kind}) {
			t.Errorf("%d: %+v", status, out)
		}
	}
	if out := sem.Judge(Exchange{}, errTimedOut); out != (belfry.Outcome{Kind: belfry.Failure}) {
		t.Errorf("timed out: %+v", out)
	}
	if out := sem.Judge(Exchange{}, &belfry.Rejection{RetryAfter: 1}); out != (belfry.Outcome{Kind: belfry.Ignored, RetryAfter: 1}) {
		t.Errorf("refused: %+v", out)
	}
	if _, ok := sem.Replay(x(200)); ok || sem.Streams() {
		t.Error("a response can be written twice, or goes on after its handler")
	}
}

func TestExchangeOfNobody(t *testing.T) {
	if s := (Exchange{}).Status(); s != 0 {
		t.Errorf("got %d", s)
	}
}

// The deadline keeps the contract as a layer does.
func TestBoundContract(t *testing.T) {
	for _, d := range []time.Duration{time.Hour, 50 * time.Millisecond} {
		t.Run(d.String(), func(t *testing.T) {
			belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
				return numbered(&bound{exchanges{inner}, d, nil}), nil
			}, belfrytest.TimesOut)
		})
	}
}

type number struct{}

// exchanges is a service of numbers as one of exchanges, which carry them in a context.
type exchanges struct{ belfry.Service[int, int] }

func (e exchanges) Call(ctx context.Context, permit belfry.Permit, x Exchange) (Exchange, error) {
	n, err := e.Service.Call(ctx, permit, x.r.Context().Value(number{}).(int))
	return x.with(n), err
}

func (x Exchange) with(n int) Exchange {
	return x.WithRequest(x.r.WithContext(context.WithValue(context.Background(), number{}, n)))
}

// numbered is the way back.
func numbered(inner exchanger) belfry.Service[int, int] {
	return numbers{inner}
}

type numbers struct{ exchanger }

func (s numbers) Call(ctx context.Context, permit belfry.Permit, n int) (int, error) {
	r := &http.Request{ProtoMajor: 1}
	w := httptest.NewRecorder()
	x := Exchange{w: w, r: r, guard: newGuard(w, r, true)}
	res, err := s.exchanger.Call(ctx, permit, x.with(n))
	if err != nil && errors.Is(err, belfry.ErrRejected) && res.r == nil {
		return 0, err
	}
	return res.r.Context().Value(number{}).(int), err
}
