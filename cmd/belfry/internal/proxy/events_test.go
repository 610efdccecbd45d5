package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfryhttp"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/health"
	"github.com/belfry-go/belfry/hedge"
	"github.com/belfry-go/belfry/retry"
)

// lines returns how many lines of a log have all of words.
func lines(text string, words ...string) (n int) {
next:
	for line := range strings.Lines(text) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		n++
	}
	return n
}

func TestEventsInTheLog(t *testing.T) {
	boom, other := errors.New("boom"), errors.New("other")
	inBubble := func(name string, level slog.Level, f func(t *testing.T, e *events, log *bytes.Buffer)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				f(t, newEvents(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))), &out)
			})
		})
	}
	want := func(t *testing.T, log *bytes.Buffer, n int, words ...string) {
		t.Helper()
		if got := lines(log.String(), words...); got != n {
			t.Errorf("%d lines with %q, want %d, in\n%s", got, words, n, log)
		}
		log.Reset()
	}

	inBubble("what happens with each request is told of once in a while, and counted always", slog.LevelDebug, func(t *testing.T, e *events, log *bytes.Buffer) {
		for range 1000 {
			for by := range refusers {
				e.refusal(by)(boom)
			}
			e.retried(retry.Event{Attempt: 1, Err: boom, Wait: time.Second})
			e.hedged(hedge.Event{Hedge: 1, Delay: time.Second})
		}
		for by := range refusers {
			layer := slog.String("layer", by.String()).String()
			if strings.Contains(by.String(), " ") {
				layer = fmt.Sprintf("layer=%q", by)
			}
			if n := lines(log.String(), "level=DEBUG", "layer refused", layer+" ", "error=boom"); n != 1 || e.refusals()[by.String()] != 1000 {
				t.Errorf("%v: %d lines, counted %v", by, n, e.refusals())
			}
		}
		want(t, bytes.NewBufferString(log.String()), 1, "level=INFO", "request hedged", "hedge=1", "after=1s")
		want(t, log, 1, "level=INFO", "request tried again", "attempt=1", "wait=1s", "error=boom")
		time.Sleep(quiet)
		e.refusal(byBuffer)(boom)
		e.retried(retry.Event{Attempt: 2})
		want(t, bytes.NewBufferString(log.String()), 2)
		want(t, log, 2, "suppressed=999")
	})
	inBubble("refusals are not told of unless somebody asks for it", slog.LevelInfo, func(t *testing.T, e *events, log *bytes.Buffer) {
		e.refusal(byShed)(boom)
		if want(t, log, 0); e.refusals()["load shed"] != 1 {
			t.Errorf("counted %v", e.refusals())
		}
	})
	inBubble("an endpoint that fails again and again is told of once", slog.LevelInfo, func(t *testing.T, e *events, log *bytes.Buffer) {
		failed := balance.Event{Kind: balance.EndpointFailed, Key: "http://a", Err: boom}
		for range 5 {
			e.endpoint(failed)
		}
		want(t, log, 1, "level=WARN", "endpoint=http://a", "error=boom")
		e.endpoint(balance.Event{Kind: balance.EndpointReady, Key: "http://a"})
		want(t, log, 1, "level=INFO", "endpoint ready")
		e.endpoint(balance.Event{Kind: balance.EndpointReady, Key: "http://a"})
		want(t, log, 0)
		e.endpoint(failed)
		want(t, log, 1, "level=WARN")
		e.endpoint(balance.Event{Kind: balance.EndpointRemoved, Key: "http://a"})
		e.endpoint(failed)
		want(t, log, 1, "level=WARN")
	})
	inBubble("an error of discovery is told of when it is another, and once a minute", slog.LevelInfo, func(t *testing.T, e *events, log *bytes.Buffer) {
		for _, err := range []error{boom, boom, other, other} {
			e.endpoint(balance.Event{Kind: balance.DiscoveryFailed, Err: err})
		}
		want(t, log, 2, "discovery failed")
		time.Sleep(reminder)
		e.endpoint(balance.Event{Kind: balance.DiscoveryFailed, Err: other})
		want(t, log, 1, "discovery failed", "error=other")
	})
	inBubble("a breaker is told of when it opens and when it closes", slog.LevelInfo, func(t *testing.T, e *events, log *bytes.Buffer) {
		e.breaker("http://a", breaker.Change{From: breaker.Closed, To: breaker.Open, Err: boom})
		want(t, log, 1, "level=WARN", "endpoint tripped", "endpoint=http://a", "error=boom")
		e.breaker("http://a", breaker.Change{From: breaker.Open, To: breaker.HalfOpen})
		e.breaker("http://a", breaker.Change{From: breaker.HalfOpen, To: breaker.Open, Err: boom})
		want(t, log, 0)
		e.breaker("http://a", breaker.Change{From: breaker.HalfOpen, To: breaker.Closed})
		want(t, log, 1, "level=INFO", "endpoint no longer tripped", "endpoint=http://a")
	})
	inBubble("health is told of whenever it changes", slog.LevelInfo, func(t *testing.T, e *events, log *bytes.Buffer) {
		e.health("http://a", health.Stats{LastError: boom})
		want(t, log, 1, "level=WARN", "endpoint unhealthy", "endpoint=http://a", "error=boom")
		e.health("http://a", health.Stats{Healthy: true})
		want(t, log, 1, "level=INFO", "endpoint healthy", "endpoint=http://a")
	})
}

// Each hook of the layers is told of what the test, as client and as server, makes happen.
func TestEachHookIsWired(t *testing.T) {
	started, rest := make(chan struct{}, 1), make(chan struct{})
	var ill, flaky atomic.Bool
	target := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/healthz" && ill.Load(), r.URL.Path == "/flaky" && flaky.CompareAndSwap(false, true):
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/slow":
			started <- struct{}{}
			<-rest
		case r.URL.Path == "/late":
			<-r.Context().Done()
		}
	})
	free := sync.OnceFunc(func() { close(rest) })
	defer free()
	var admitted, retried atomic.Int64
	var s *Server
	cfg := configure(func(c *Config) {
		c.Limit, c.EndpointLimit, c.Buffer, c.BufferWait, c.Timeout = 1, 1, 1, 200*time.Millisecond, time.Second
		c.Health = Health{Path: "/healthz", Interval: 100 * time.Millisecond, Timeout: time.Second, Unhealthy: 1, Healthy: 1}
	}, target)
	p := startWith(t, cfg, Options{Admin: func(made *Server) http.Handler {
		s = made
		s.OnAdmit(func(time.Duration) { admitted.Add(1) })
		s.OnRetry(func(retry.Event) { retried.Add(1) })
		return http.NotFoundHandler()
	}})
	count := func(by refuser) uint64 { return s.State().Refusals[by.String()] }

	if res, _ := p.fetch(t, http.MethodGet, "/flaky", ""); res.StatusCode != http.StatusOK || retried.Load() != 1 || admitted.Load() != 1 {
		t.Errorf("answered %s, %d tried again, %d admitted", res.Status, retried.Load(), admitted.Load())
	}
	if res, _ := p.fetch(t, http.MethodGet, "/late", ""); res.StatusCode != http.StatusGatewayTimeout || count(byTimeout) != 1 {
		t.Errorf("answered %s, %d too late", res.Status, count(byTimeout))
	}

	// One request has the place, one the seat, which it loses after a while; a third is turned away at once.
	first := make(chan int, 1)
	send := func(path string, to chan<- int) {
		res, _ := p.fetch(t, http.MethodGet, path, "")
		to <- res.StatusCode
	}
	go send("/slow", first)
	wait(t, "the first request", started)
	before := s.State().Refusals
	second := make(chan int, 1)
	go send("/", second)
	eventually(t, "the second request in the line", func() bool { return s.State().Buffer.Queued == 1 })
	if res, _ := p.fetch(t, http.MethodGet, "/", ""); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get(belfryhttp.ReasonHeader) != "buffer: full" {
		t.Errorf("the third is answered %s, %q", res.Status, res.Header.Get(belfryhttp.ReasonHeader))
	}
	if got := wait(t, "the answer", second); got != http.StatusServiceUnavailable {
		t.Errorf("the second is answered %d", got)
	}
	for by, n := range map[refuser]uint64{byShed: 1, byBuffer: 2, byLimit: 2} { // the limit is asked, and then waited for
		if got := count(by) - before[by.String()]; got != n {
			t.Errorf("%v has turned away %d, want %d", by, got, n)
		}
	}
	// The probes find no place, and say that the server is well.
	eventually(t, "a full endpoint", func() bool { return count(byEndpoint) > 0 })
	free()
	if got := wait(t, "the first answer", first); got != http.StatusOK && got != http.StatusGatewayTimeout {
		t.Errorf("the first is answered %d", got)
	}

	unhealthy := lines(p.log.String(), "endpoint unhealthy")
	changes := func() uint64 { return s.State().Endpoints[0].Health.Changes }
	was := changes()
	ill.Store(true)
	eventually(t, "an unhealthy server", func() bool {
		return changes() == was+1 && lines(p.log.String(), "level=WARN", "endpoint unhealthy") == unhealthy+1
	})
	ill.Store(false)
	eventually(t, "a healthy server", func() bool { return changes() == was+2 && lines(p.log.String(), "level=INFO", "endpoint healthy") > 0 })
	if n := lines(p.log.String(), "request tried again"); n != 1 {
		t.Errorf("%d lines about retries", n)
	}
}

func TestAReloadChangesHowMuchIsLogged(t *testing.T) {
	var level slog.LevelVar
	var next atomic.Pointer[Config]
	cfg := configure(func(c *Config) { c.LogLevel = "error" }, nobody(t))
	var s *Server
	// The log of the test has everything: it is the level that is looked at.
	p := startWith(t, cfg, Options{
		Level:  &level,
		Reload: func() (Config, error) { return *next.Load(), nil },
		Admin:  func(made *Server) http.Handler { s = made; return http.NotFoundHandler() },
	})
	if level.Level() != slog.LevelError {
		t.Errorf("the level is %v", level.Level())
	}
	cfg.LogLevel = "debug"
	next.Store(&cfg)
	p.signals <- syscall.SIGHUP
	eventually(t, "the reload", func() bool { return s.State().Config.Generation == 2 })
	if level.Level() != slog.LevelDebug {
		t.Errorf("after the reload the level is %v", level.Level())
	}
}

// A proxy that turns much away must not write as much.
func TestHundredsOfRefusalsAreAFewLines(t *testing.T) {
	started, rest := make(chan struct{}, 10), make(chan struct{})
	p := start(t, func(c *Config) { c.Limit, c.Buffer, c.BufferWait = 1, 1, time.Minute }, server(t, func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-rest
	}))
	defer close(rest)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hold := func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
		if res, err := p.client.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
	go hold()
	wait(t, "the first request", started)
	go hold()
	eventually(t, "the second in the line", func() bool { return p.server.State().Buffer.Queued == 1 })
	began := time.Now()
	const refused = 300
	for range refused {
		if res, _ := p.fetch(t, http.MethodGet, "/", ""); res.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("answered %s", res.Status)
		}
	}
	if n, most := lines(p.log.String(), "buffer: full"), int(time.Since(began)/quiet)+1; n < 1 || n > most {
		t.Errorf("%d lines for %d refusals, want at most %d:\n%s", n, refused, most, p.log)
	}
	if n := p.server.State().Refusals["load shed"]; n != refused {
		t.Errorf("%d are counted of %d", n, refused)
	}
}
