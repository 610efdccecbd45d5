package proxy

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A request that hangs at one server is sent to the other, which answers; one that may not be carried out twice is not.
func TestHedge(t *testing.T) {
	var asked atomic.Int32
	gate := make(chan struct{}, 1)
	handle := func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 { // whoever is asked first
			select {
			case <-gate:
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("Server", r.Host)
	}
	first, second := server(t, handle), server(t, handle)
	r := start(t, func(cfg *Config) {
		cfg.Hedge.Delay, cfg.AccessLog = 20*time.Millisecond, true
	}, first, second)
	if text := r.server.State().Stack; !strings.Contains(text, " → hedge(after 20ms) → balance") {
		t.Errorf("stack %s", text)
	}

	res, _ := r.fetch(t, "GET", "/", "")
	if res.StatusCode != http.StatusOK || asked.Load() != 2 {
		t.Errorf("status %d, %d servers were asked", res.StatusCode, asked.Load())
	}
	if s := r.server.State().Hedge; s.Hedges != 1 || s.Won != 1 || s.Delay != 20*time.Millisecond {
		t.Errorf("%+v", s)
	}
	if n := lines(r.log.String(), "level=INFO", "request hedged", "hedge=1", "after=20ms"); n != 1 {
		t.Errorf("%d lines about hedges, want 1, in\n%s", n, r.log)
	}

	asked.Store(0)
	go func() {
		for asked.Load() == 0 {
			<-time.After(time.Millisecond)
		}
		<-time.After(100 * time.Millisecond)
		gate <- struct{}{}
	}()
	res, _ = r.fetch(t, "POST", "/", "content")
	if res.StatusCode != http.StatusOK || asked.Load() != 1 {
		t.Errorf("POST: status %d, %d servers were asked", res.StatusCode, asked.Load())
	}
	if s := r.server.State().Hedge; s.Hedges != 1 || s.NotAllowed != 1 {
		t.Errorf("%+v", s)
	}
	for begin := time.Now(); !strings.Contains(r.log.String(), "attempts=1 ") || !strings.Contains(r.log.String(), "attempts=2 "); {
		if time.Since(begin) > patience { // a request is logged when it has been answered
			t.Fatalf("log\n%s", r.log)
		}
		<-time.After(time.Millisecond)
	}
}
