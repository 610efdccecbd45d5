package proxy

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/belfryhttp"
)

func TestLoadThatServersReport(t *testing.T) {
	for _, name := range []string{LoadReported, LoadProbing, LoadExpected} {
		t.Run(name, func(t *testing.T) {
			var probes atomic.Int32
			says := belfryhttp.ReportLoad(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), belfryhttp.ReportConfig{ProbePath: "/load"})
			handle := func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/load" {
					probes.Add(1)
				}
				says.ServeHTTP(w, r)
			}
			r := start(t, func(cfg *Config) { cfg.Load, cfg.ProbePath = name, "/load" }, server(t, handle), server(t, handle))
			if text := r.server.State().Stack; !strings.Contains(text, "balance("+name+")") {
				t.Errorf("stack %s", text)
			}
			// Not every request leads to a probe, and none that does waits for it.
			for begin := time.Now(); ; <-time.After(time.Millisecond) {
				if res, _ := r.fetch(t, "GET", "/", ""); res.StatusCode != http.StatusOK || res.Header.Get("x-load") == "" {
					t.Fatalf("status %d, header %v", res.StatusCode, res.Header)
				}
				reports := uint64(0)
				for _, ep := range r.server.State().Endpoints {
					reports += ep.Reports
				}
				if (reports > 0) == (name != LoadExpected) && (probes.Load() > 0) == (name == LoadProbing) {
					if came, sent := uint64(probes.Load()), r.server.State().Probes.Sent; sent < came {
						t.Errorf("the state has %d probes, and %d came", sent, came)
					}
					break
				}
				if time.Since(begin) > patience {
					t.Fatalf("%d reports, %d probes", reports, probes.Load())
				}
			}
		})
	}
}
