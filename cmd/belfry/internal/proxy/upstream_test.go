package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/belfryhttp"
)

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
			// At random, and when both are there: the default soon leaves alone what fails.
			p := start(t, func(c *Config) { c.ReplayBytes, c.Load = 1000, LoadRandom }, c.bad(t), fine)
			p.warm(t, 2)
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

func TestNoOtherProxyIsAsked(t *testing.T) {
	if (&recipe{}).transport("http", 1).Proxy != nil {
		t.Error("the transport asks the environment for a proxy")
	}
}
