package proxy

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/eject"
)

// Of two servers that ask to be left alone one is, if only one of three may be.
func TestServersAreLeftAloneWithinTheGuardRail(t *testing.T) {
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	p := startReloadable(t, func(c *Config) {
		c.Load = LoadRandom
		c.Outlier = Outlier{Gap: 0.1, Latency: 3, Interval: time.Second, MinCalls: 10, MinPause: time.Hour, MaxPause: time.Hour}
	}, server(t, busy), server(t, busy), server(t, func(http.ResponseWriter, *http.Request) {}))
	eventually(t, "one that is left alone, and one that is not to be", func() bool {
		_, _ = p.fetch(t, http.MethodGet, "/", "")
		s := p.server.State().Guard
		return s.Out == 1 && s.Refused[eject.Overload] > 0
	})
	s := p.server.State()
	var why []eject.Why
	for _, ep := range s.Endpoints {
		why = append(why, ep.Ejected...)
		if ep.Outlier == nil || ep.Until > 30*time.Second {
			t.Errorf("%+v", ep)
		}
	}
	if s.Guard.Endpoints != 3 || s.Guard.Allowed != 1 || !slices.Equal(why, []eject.Why{eject.Overload}) {
		t.Errorf("%+v, out for %v", s.Guard, why)
	}
	if !strings.Contains(s.Stack, "outlier(0.1 fewer good answers or 3 times as slow) → concurrency limit") {
		t.Errorf("the stack reads %s", s.Stack)
	}
	p.reload(t, nil, func(c *Config) { c.Outlier = Defaults().Outlier })
	eventually(t, "nobody who compares", func() bool {
		return !slices.ContainsFunc(p.server.State().Endpoints, func(ep EndpointState) bool { return ep.Outlier != nil })
	})
}
