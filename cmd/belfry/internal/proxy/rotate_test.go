package proxy

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestAnAddressIsConnectedToSeveralTimesInTurns(t *testing.T) {
	var opened, closed atomic.Int32
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	backend.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			closed.Add(1)
		case http.StateActive, http.StateIdle, http.StateHijacked:
		}
	}
	backend.Start()
	defer backend.Close()
	p := start(t, func(cfg *Config) { cfg.PerAddress, cfg.RotateEvery = 2, 2*time.Second }, backend.URL)
	for end := time.Now().Add(2 * patience); closed.Load() < 2; {
		if time.Now().After(end) {
			t.Fatalf("%d connections were opened, and %d closed", opened.Load(), closed.Load())
		}
		res, err := p.client.Get(p.url)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", res, err)
		}
		res.Body.Close()
	}
	if n := len(p.server.State().Endpoints); n < 2 || n > 3 {
		t.Errorf("%d endpoints", n)
	}
}
