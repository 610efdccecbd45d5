package proxy

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

func TestConnectionsAreThereBeforeRequests(t *testing.T) {
	var opened atomic.Int32
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	backend.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	backend.Start()
	defer backend.Close()
	cfg := func(cfg *Config) { cfg.Warm = 3 }
	p := start(t, cfg, backend.URL)
	eventually(t, "three connections", func() bool { return opened.Load() >= 3 })
	res, err := p.client.Get(p.url)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", res, err)
	}
	res.Body.Close()
	if n := opened.Load(); n != 3 {
		t.Errorf("%d connections were opened, want 3", n)
	}
}
