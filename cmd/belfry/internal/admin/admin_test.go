package admin

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

func Example() {
	source := &proxied{state: proxy.State{Address: "127.0.0.1:8080", Started: time.Now()}}
	a := New(source) // of a proxy.Server, in Options.Admin
	a.Start()
	defer a.Close()
	for _, path := range []string{"/healthz", "/readyz"} {
		fmt.Print(path, " ", ask(a, http.MethodGet, path).Body)
	}
	source.change(func(s *proxy.State) { s.Draining = true })
	fmt.Print("/readyz ", ask(a, http.MethodGet, "/readyz").Body)
	// Output:
	// /healthz ok
	// /readyz ready
	// /readyz draining
}

func TestReadyEndsWithTheSignalAndHealthDoesNot(t *testing.T) {
	p := busy(time.Now())
	a := New(p)
	check := func(when string, ready int) {
		t.Helper()
		if got := ask(a, http.MethodGet, "/readyz").Code; got != ready {
			t.Errorf("%s: ready is %d, want %d", when, got, ready)
		}
		if got := ask(a, http.MethodGet, "/healthz").Code; got != http.StatusOK {
			t.Errorf("%s: health is %d", when, got)
		}
	}
	check("before anything", http.StatusOK)
	p.change(func(s *proxy.State) { s.Endpoints = nil })
	check("without endpoints", http.StatusOK)
	p.change(func(s *proxy.State) { s.Draining = true })
	check("draining", http.StatusServiceUnavailable)
}

func TestNothingCanBeChanged(t *testing.T) {
	a := New(busy(time.Now()))
	for _, path := range []string{"/", "/api/state", "/api/decisions", "/api/events", "/healthz", "/readyz", "/metrics"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if w := ask(a, method, path); w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s answers %d", method, path, w.Code)
			}
		}
	}
	if w := ask(a, http.MethodGet, "/debug/pprof/"); w.Code != http.StatusNotFound {
		t.Errorf("what is not there answers %d", w.Code)
	}
}

func TestAPageFromElsewhereCannotReadIt(t *testing.T) {
	a := New(busy(time.Now()))
	for _, c := range []struct {
		local, host string
		want        int
	}{
		{"127.0.0.1:9900", "127.0.0.1:9900", 200},
		{"127.0.0.1:9900", "localhost:9900", 200},
		{"127.0.0.1:9900", "LOCALHOST.", 200},
		{"127.0.0.1:9900", "belfry.localhost:9900", 200},
		{"127.0.0.1:9900", "box:9900", 200},
		{"[::1]:9900", "[::1]:9900", 200},
		{"[::1]:9900", "[::1]", 200},
		{"127.0.0.1:9900", "evil.example:9900", 421},
		{"127.0.0.1:9900", "127.0.0.1.evil.example", 421},
		{"127.0.0.1:9900", "evil.example.", 421},
		{"[::1]:9900", "evil.example", 421},
		{"[::ffff:127.0.0.1]:9900", "evil.example", 421},
		{"10.0.0.1:9900", "proxy.example:9900", 200},
	} {
		addr, err := net.ResolveTCPAddr("tcp", c.local)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/api/state", nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(addr))))
		if w.Code != c.want {
			t.Errorf("host %s at %s: %d, want %d", c.host, c.local, w.Code, c.want)
		}
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("pages of %q may read it", got)
		}
	}
}

func TestStateSaysWhatTheProxySays(t *testing.T) {
	from := time.Now().Add(-time.Hour)
	p := busy(from)
	a := New(p)
	traffic(a, p, from)
	s := state(t, a)

	if s.Status != Rejecting || s.Address != "127.0.0.1:8080" || s.Config.Generation != 3 || s.Config.File != "/etc/belfry.yaml" {
		t.Errorf("%s, at %s, configuration %+v", s.Status, s.Address, s.Config)
	}
	if s.UptimeSeconds < 3600 || s.UptimeSeconds > 3660 {
		t.Errorf("up for %v s", s.UptimeSeconds)
	}
	if len(s.Stack) != 8 || s.Stack[1] != (Layer{"buffer", "64, max wait 5s"}) || s.Stack[0] != (Layer{"load shed", ""}) {
		t.Errorf("the stack is %+v", s.Stack)
	}
	r := s.Requests
	if r.Total != 1_234_567+12*44 || r.InFlight != 57 || r.Rate != 44 || r.Rejected != 1 || r.Failed != 2 || r.FailedTotal != 24 {
		t.Errorf("requests are %+v", r)
	}
	if r.P50 == nil || math.Abs(*r.P50-5) > 1.1 || r.P99 == nil || math.Abs(*r.P99-320) > 2 {
		t.Errorf("p50 is %v, p99 is %v", r.P50, r.P99)
	}
	if r.Outcomes["success"] != 12*41 || r.Outcomes["server_error"] != 24 || r.Outcomes["rejected"] != 12 || len(r.Outcomes) != int(outcomes) {
		t.Errorf("outcomes are %v", r.Outcomes)
	}
	if s.Retry.Rate != 3 || s.Retry.Budget != 98.7 || s.Buffer.Queued != 4 || s.Limit.InFlight != 53 || s.Shed != 7 {
		t.Errorf("retry %+v, buffer %+v, limit %+v, shed %d", s.Retry, s.Buffer, s.Limit, s.Shed)
	}
	if want := (Hedge{Hedges: 61, Won: 17, NotAllowed: 2, OutOfBudget: 5, NotReady: 4, DelaySeconds: 0.12}); s.Hedge != want {
		t.Errorf("hedge is %+v, want %+v", s.Hedge, want)
	}
	if len(s.Reasons) != 1 || s.Reasons[0] != (Reason{"buffer: full", 12}) {
		t.Errorf("reasons are %v", s.Reasons)
	}

	// In the order of their names, whatever the order of their appearance.
	if len(s.Endpoints) != 3 {
		t.Fatalf("%d endpoints", len(s.Endpoints))
	}
	one, two, three := s.Endpoints[0], s.Endpoints[1], s.Endpoints[2]
	if one.Key != "http://10.0.0.1:8080" || one.Condition != Ready || one.InFlight != 13 || one.Limit != 40 || one.Rate != 30 || one.Successes != 360 {
		t.Errorf("the first endpoint is %+v", one)
	}
	if share := 30. / 43; one.Share == nil || math.Abs(*one.Share-share) > 1e-9 {
		t.Errorf("its share is %v, want %v", one.Share, share)
	}
	if one.Latency == nil || *one.Latency != 4.321 || one.Cost == nil || *one.Cost != 74_082.37 {
		t.Errorf("its latency is %v, its cost %v", one.Latency, one.Cost)
	}
	if two.Condition != NotReady || two.Rate != 13 || two.Failed != 2 || two.State != "not ready" {
		t.Errorf("the second endpoint is %+v", two)
	}
	if three.Condition != BackingOff || *three.Share != 0 || three.Latency != nil || three.Cost != nil || three.NotReady != errRefused.Error() {
		t.Errorf("the third endpoint is %+v", three)
	}
}

func TestNothingHappenedIsNotZero(t *testing.T) {
	p := busy(time.Now())
	a := New(p)
	s := state(t, a)
	for _, e := range s.Endpoints {
		if e.Share != nil {
			t.Errorf("%s has a share of nothing: %v", e.Key, *e.Share)
		}
	}
	if s.Requests.P50 != nil || s.Requests.P99 != nil {
		t.Errorf("quantiles of nothing: %+v", s.Requests)
	}
}

func TestNumbersThatJSONDoesNotKnow(t *testing.T) {
	p := busy(time.Now())
	p.state.Endpoints[0].Cost, p.state.Endpoints[1].Cost = math.Inf(1), math.NaN()
	for _, e := range state(t, New(p)).Endpoints {
		if e.Cost != nil {
			t.Errorf("a cost that is no number is %v", *e.Cost)
		}
	}
}

func TestErrorsAreCutAndCannotLeaveTheirText(t *testing.T) {
	p := busy(time.Now())
	long := strings.Repeat("é", 1000) + "</script><script>"
	p.state.Endpoints[0].Failure = fmt.Errorf("%s\xff", long)
	p.state.Endpoints[1].Failure = fmt.Errorf("</script><script>alert(1)</script>\xff\u2028\n")
	a := New(p)
	for _, path := range []string{"/", "/api/state"} {
		body := ask(a, http.MethodGet, path).Body.Bytes()
		if bytes.Contains(body, []byte("alert(1)</script>")) || bytes.Contains(body, []byte("</script><script>alert")) {
			t.Errorf("%s has the error's text as markup", path)
		}
	}
	s := state(t, a)
	if got := []rune(s.Endpoints[1].LastError); len(got) != maxText || got[maxText-1] != '…' {
		t.Errorf("a long error has %d characters", len(got))
	}
	if b := event("state", s); bytes.Count(b, []byte("\n")) != 3 {
		t.Errorf("an event breaks off: %q", b)
	}
}

func TestStartTicksOnceASecondUntilClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := busy(time.Now())
		a := New(p)
		a.Start()
		a.Start()
		time.Sleep(tick / 2)
		for range 400 {
			p.answer(5, 200, "", time.Millisecond, 0)
			time.Sleep(tick)
		}
		synctest.Wait()
		points := a.meter.history()
		if len(points) != timeline {
			t.Fatalf("%d points", len(points))
		}
		for i, point := range points {
			if point.Rate != 5 || i > 0 && point.Time-points[i-1].Time != 1000 {
				t.Errorf("point %d is %+v", i, point)
			}
		}
		a.Close()
		a.Close()
		n := a.meter.latest()
		time.Sleep(5 * tick)
		if a.meter.latest() != n {
			t.Error("it ticks after Close")
		}
	})
}

func TestCloseBeforeStart(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		a := New(busy(time.Now()))
		a.Close()
		a.Start() // the bubble would say what stays behind
	})
}

// What a balance.State is called must not get lost between here and there.
func TestEveryStateHasACondition(t *testing.T) {
	for _, c := range []struct {
		state   balance.State
		failing bool
		health  *proxy.HealthState
		want    Condition
	}{
		{balance.Ready, false, nil, Ready},
		{balance.Ready, true, nil, Failing},
		{balance.NotReady, false, nil, NotReady},
		{balance.NotReady, true, nil, Failing},
		{balance.Dialling, true, nil, Dialling},
		{balance.BackingOff, false, nil, BackingOff},
		{balance.BackingOff, true, &proxy.HealthState{Healthy: true}, BackingOff},
		{balance.BackingOff, false, &proxy.HealthState{}, Unhealthy},
		{balance.Ready, true, &proxy.HealthState{}, Unhealthy},
		{balance.Closed, true, &proxy.HealthState{}, Closed},
		{balance.Draining, true, &proxy.HealthState{}, Removed},
	} {
		e := proxy.EndpointState{EndpointStats: balance.EndpointStats{State: c.state}, Health: c.health}
		if got := conditionOf(e, c.failing); got != c.want {
			t.Errorf("%v, failing %v, health %v: %s, want %s", c.state, c.failing, c.health, got, c.want)
		}
	}
}
