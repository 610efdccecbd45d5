package admin

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

func TestRatesAreOverTheWindowAndPointsOverATick(t *testing.T) {
	at := time.Now()
	p := busy(at)
	a := New(p)
	a.tick(at)
	for second := range 30 {
		p.answer(second, 200, "", time.Millisecond, 1)
		at = at.Add(tick)
		a.tick(at)
	}
	if got := a.meter.latest(); got.Rate != 29 || got.Time != at.UnixMilli() {
		t.Errorf("the last point is %+v", got)
	}
	if got := a.meter.lately().point.Rate; got != 24.5 {
		t.Errorf("the last ten seconds brought %v a second, want 24.5", got)
	}
	// A tick that comes late is no burst.
	p.answer(30, 200, "", time.Millisecond, 1)
	a.tick(at.Add(3 * tick))
	if got := a.meter.latest().Rate; got != 10 {
		t.Errorf("30 in three seconds are %v a second", got)
	}
}

func TestATickWithoutRequestsIsAGap(t *testing.T) {
	at := time.Now()
	p := busy(at)
	a := New(p)
	a.tick(at)
	p.answer(1, 200, "", 7*time.Millisecond, 1)
	a.tick(at.Add(tick))
	a.tick(at.Add(2 * tick))
	points := a.meter.history()
	if points[0].P50 == nil || *points[0].P50 < 6.9 || *points[0].P50 > 7.1 {
		t.Errorf("a second with one request of 7 ms is %+v", points[0])
	}
	if points[1].P50 != nil || points[1].P99 != nil || points[1].Rate != 0 {
		t.Errorf("a second with none is %+v", points[1])
	}
	if r := a.now().Requests; r.P50 == nil {
		t.Error("the window has forgotten it already")
	}
}

func TestAnEndpointFailsUntilItSucceedsAgain(t *testing.T) {
	at := time.Now()
	p := busy(at)
	a := New(p)
	a.tick(at)
	tickAfter := func(good, bad int) Condition {
		p.answer(good, 200, "", time.Millisecond, 1)
		p.answer(bad, 500, "", time.Millisecond, 1)
		at = at.Add(tick)
		a.tick(at)
		return state(t, a).Endpoints[0].Condition
	}
	for _, c := range []struct {
		good, bad int
		want      Condition
	}{
		{0, 0, Ready}, {5, 1, Ready}, {1, 5, Failing}, {0, 0, Failing}, {2, 2, Ready}, {0, 1, Failing}, {0, 0, Failing}, {1, 0, Ready},
	} {
		if got := tickAfter(c.good, c.bad); got != c.want {
			t.Errorf("after %d good and %d bad: %s, want %s", c.good, c.bad, got, c.want)
		}
	}
	for range 3 * window { // nothing is sent, so nothing is learned
		tickAfter(0, 0)
	}
	tickAfter(0, 1)
	for range 3 * window {
		tickAfter(0, 0)
	}
	if got := tickAfter(0, 0); got != Failing {
		t.Errorf("half a minute without requests made it %s", got)
	}
}

func TestAnEndpointThatComesBackHasItsOwnCounts(t *testing.T) {
	at := time.Now()
	p := busy(at)
	a := New(p)
	a.tick(at)
	p.answer(100, 200, "", time.Millisecond, 1)
	p.change(func(s *proxy.State) {
		again := s.Endpoints[1]
		s.Endpoints[1].State = balance.Draining
		again.Successes = 25
		s.Endpoints = append(s.Endpoints, again)
	})
	a.tick(at.Add(tick))
	s := state(t, a)
	if len(s.Endpoints) != 4 || s.Endpoints[0].Condition != Removed || s.Endpoints[1].Condition != Ready || s.Endpoints[0].Key != s.Endpoints[1].Key {
		t.Fatalf("endpoints are %+v", s.Endpoints)
	}
	if old, again := *s.Endpoints[0].Share, *s.Endpoints[1].Share; old != 0.8 || again != 0.2 {
		t.Errorf("shares are %v and %v, want 0.8 and 0.2", old, again)
	}
	// When the old one is gone the new one takes its place in the list. Its count is below the old one's, and begins anew.
	p.change(func(s *proxy.State) {
		s.Endpoints = append(s.Endpoints[:1], s.Endpoints[2:]...)
		s.Endpoints[2].Successes = 30
	})
	a.tick(at.Add(2 * tick))
	if e := state(t, a).Endpoints[0]; e.Rate > 15 || *e.Share != 1 {
		t.Errorf("after that it has %v a second, a share of %v", e.Rate, *e.Share)
	}
	if n := len(a.meter.failing); n > 3 {
		t.Errorf("%d endpoints are remembered, of 3", n)
	}
}

func BenchmarkTick(b *testing.B) {
	at := time.Now()
	p := busy(at)
	for range 97 {
		p.state.Endpoints = append(p.state.Endpoints, p.state.Endpoints[1])
	}
	a := New(p)
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(tick)
		a.tick(at)
	}
}

func BenchmarkNote(b *testing.B) {
	r := newRequests()
	rec := proxy.Record{Status: 200, Latency: 3 * time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		r.note(rec)
	}
}
