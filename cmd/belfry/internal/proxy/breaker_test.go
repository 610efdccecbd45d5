package proxy

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/breaker"
)

// A server that fails is left alone, and comes back; probes of its health have no say in it.
func TestAServerThatFailsIsLeftAlone(t *testing.T) {
	var ill atomic.Bool
	ill.Store(true)
	var asked atomic.Int64
	bad := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			return
		}
		asked.Add(1)
		if ill.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	good := server(t, func(http.ResponseWriter, *http.Request) {})
	p := startReloadable(t, func(c *Config) {
		c.Load = LoadRandom
		c.Breaker.Consecutive, c.Breaker.MinPause = 3, time.Hour
		c.Breaker.MaxPause = time.Hour
		c.Health = Health{Path: "/healthz", Interval: 100 * time.Millisecond, Timeout: time.Second, Unhealthy: 2, Healthy: 1}
	}, bad, good)
	p.warm(t, 2) // the breaker of the only server would be spared
	state := func() *breaker.Stats {
		for _, ep := range p.server.State().Endpoints {
			if strings.Contains(bad, ep.Key) || strings.Contains(ep.Key, bad) {
				return ep.Breaker
			}
		}
		return nil // not yet
	}
	eventually(t, "an open breaker", func() bool {
		_, _ = p.fetch(t, http.MethodGet, "/", "")
		s := state()
		return s != nil && s.State == breaker.Open
	})
	eventually(t, "a line in the log", func() bool {
		return lines(p.log.String(), "level=WARN", "endpoint tripped", "endpoint="+bad, "until=") == 1
	})
	for range 50 {
		if res, _ := p.fetch(t, http.MethodGet, "/", ""); res.StatusCode != http.StatusOK {
			t.Fatalf("answered %d", res.StatusCode)
		}
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("it was asked %d times, want 3", n)
	}
	if text := p.server.State().Stack; !strings.Contains(text, "breaker(3 failures in a row) → concurrency limit") {
		t.Errorf("the stack reads %s", text)
	}
	ill.Store(false)
	p.reload(t, nil, func(cfg *Config) { cfg.Breaker.MinPause = time.Millisecond }) // which moves it
	eventually(t, "calls to it", func() bool {
		_, _ = p.fetch(t, http.MethodGet, "/", "")
		return asked.Load() > 5 && state() != nil && state().State == breaker.Closed
	})
	p.reload(t, nil, func(cfg *Config) { cfg.Breaker = Defaults().Breaker })
	eventually(t, "no breaker", func() bool {
		_, _ = p.fetch(t, http.MethodGet, "/", "")
		return state() == nil
	})
}

func TestBreakerReads(t *testing.T) {
	for want, b := range map[string]Breaker{
		"3 failures in a row":               {Consecutive: 3},
		"0.5 of 10s":                        {Ratio: 0.5, Window: 10 * time.Second},
		"3 failures in a row or 0.5 of 10s": {Consecutive: 3, Ratio: 0.5, Window: 10 * time.Second},
	} {
		if got := b.String(); got != want || !b.on() {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
