package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
	"github.com/belfry-go/belfry/hedge"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/retry"
)

// A proxied is a proxy that is told what to say.
type proxied struct {
	mu     sync.Mutex
	state  proxy.State
	latest []balance.Decision
	note   func(proxy.Record)
	admit  func(time.Duration)
}

func (p *proxied) State() proxy.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state
	s.Endpoints = append([]proxy.EndpointState(nil), s.Endpoints...)
	return s
}

func (p *proxied) Decisions() []balance.Decision { return p.latest }

func (p *proxied) Draining() bool { return p.State().Draining }

func (p *proxied) OnRequest(f func(proxy.Record)) { p.note = f }

func (p *proxied) OnAdmit(f func(time.Duration)) { p.admit = f }

// change changes what it says.
func (p *proxied) change(f func(s *proxy.State)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.state)
}

// answer tells of n requests that were answered with a status after a time, and counts them at an endpoint.
func (p *proxied) answer(n, status int, reason string, latency time.Duration, endpoint int) {
	for range n {
		p.note(proxy.Record{Status: status, Reason: reason, Latency: latency, Took: latency})
	}
	p.change(func(s *proxy.State) {
		s.Requests.Total += uint64(n)
		switch {
		case reason != "":
			s.Requests.Reasons[reason] += uint64(n)
		case status >= 500:
			s.Endpoints[endpoint].Failures += uint64(n)
		default:
			s.Endpoints[endpoint].Successes += uint64(n)
		}
	})
}

var errRefused = errors.New("dial tcp 10.0.0.3:8080: connect: connection refused <b>&amp;")

// busy is a proxy in front of three servers, of which one is well.
func busy(started time.Time) *proxied {
	endpoint := func(key string, state balance.State, inFlight int, cost float64, latency time.Duration) proxy.EndpointState {
		return proxy.EndpointState{
			EndpointStats: balance.EndpointStats{Key: key, Addr: key, State: state, InFlight: inFlight, Cost: cost, Latency: latency},
			Limit:         limit.Stats{Limit: 40, InFlight: inFlight},
		}
	}
	p := &proxied{state: proxy.State{
		Stack:   "load shed → buffer(64, max wait 5s) → concurrency limit(100) → timeout(30s) → retry(3 attempts) → hedge(after 120ms) → balance(peak ewma) → concurrency limit(40 each)",
		Address: "127.0.0.1:8080", Started: started,
		Config:   proxy.ConfigState{File: "/etc/belfry.yaml", Generation: 3, Since: started},
		Requests: proxy.RequestStats{Total: 1_234_567, InFlight: 57, Reasons: map[string]uint64{}},
		Endpoints: []proxy.EndpointState{
			endpoint("http://10.0.0.2:8080", balance.NotReady, 40, 20_731_004.5, 987*time.Millisecond),
			endpoint("http://10.0.0.1:8080", balance.Ready, 13, 74_082.37, 4321*time.Microsecond),
			endpoint("http://10.0.0.3:8080", balance.BackingOff, 0, 0, 0),
		},
		Shed: 7, Refusals: map[string]uint64{"load shed": 7, "buffer": 9, "concurrency limit": 40},
		Limit:  limit.Stats{Limit: 100, InFlight: 53, Waiting: 1},
		Buffer: buffer.Stats{Bound: 64, Seated: 5, Queued: 4, Admitted: 1_234_000, Rejected: 7, Expired: 2},
		Retry:  retry.Stats{Retries: 421, OutOfBudget: 3},
		Hedge:  hedge.Stats{Hedges: 61, Won: 17, OutOfBudget: 5, NotReady: 4, NotAllowed: 2, Delay: 120 * time.Millisecond},
		Budget: budget.Stats{Balance: 98.7},
	}}
	p.state.Endpoints[2].Err = errRefused
	return p
}

// traffic lets twelve seconds pass, in which things happen.
func traffic(a *Admin, p *proxied, from time.Time) {
	a.tick(from)
	for i := range 12 {
		p.answer(30, 200, "", time.Duration(4+i%3)*time.Millisecond, 1)
		p.answer(11, 200, "", 320*time.Millisecond, 0)
		p.answer(2, 500, "", 20*time.Millisecond, 0)
		p.answer(1, 503, "buffer: full", 80*time.Microsecond, -1)
		p.change(func(s *proxy.State) { s.Retry.Retries += 3 })
		from = from.Add(tick)
		a.tick(from)
	}
}

// serve serves a until the end of the test.
func serve(t *testing.T, a *Admin) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(a)
	t.Cleanup(func() {
		a.Close()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// ask answers a request for a path.
func ask(a *Admin, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

// state returns what /api/state says, as Go sees it.
func state(t *testing.T, a *Admin) Snapshot {
	t.Helper()
	var s Snapshot
	w := ask(a, http.MethodGet, "/api/state")
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != http.StatusOK {
		t.Fatalf("/api/state: %d, %v: %s", w.Code, err, w.Body)
	}
	return s
}
