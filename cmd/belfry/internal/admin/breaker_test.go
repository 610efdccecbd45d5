package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

func TestTheBreakerOfAnEndpointIsShown(t *testing.T) {
	at := time.Now().Truncate(time.Second)
	p := busy(at)
	p.state.Endpoints[0].Breaker = &breaker.Stats{
		State: breaker.Open, Since: at, NextProbe: at.Add(time.Minute), LastError: errors.New("<ill>"),
		Failures: 9, Opened: 3, Probes: 2, Refused: 77,
	}
	p.state.Endpoints[1].Breaker = &breaker.Stats{Since: at}
	a := New(p)
	var got Snapshot
	if err := json.Unmarshal(ask(a, http.MethodGet, "/api/state").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	next := at.Add(time.Minute).UTC()
	want := Breaker{State: "open", Since: at.UTC(), NextProbe: &next, LastError: "<ill>", Failures: 9, Opened: 3, Probes: 2, Refused: 77}
	shown := map[string]Endpoint{}
	for _, e := range got.Endpoints {
		shown[e.Key] = e
	}
	first, second := shown[p.state.Endpoints[0].Key], shown[p.state.Endpoints[1].Key]
	if b := first.Breaker; b == nil || b.NextProbe == nil || !b.NextProbe.Equal(next) || first.Condition != Tripped {
		t.Fatalf("%+v, %+v", first, b)
	}
	first.Breaker.NextProbe = &next
	if *first.Breaker != want {
		t.Errorf("got %+v, want %+v", *first.Breaker, want)
	}
	if b := second.Breaker; b == nil || b.State != "closed" || b.NextProbe != nil {
		t.Errorf("got %+v", b)
	}
	metrics := ask(a, http.MethodGet, "/metrics").Body.String()
	for _, want := range []string{
		`belfry_endpoint_breaker_state{endpoint="` + first.Key + `",route="default",state="open"} 1`,
		`belfry_endpoint_breaker_state{endpoint="` + first.Key + `",route="default",state="closed"} 0`,
		`belfry_endpoint_breaker_state{endpoint="` + second.Key + `",route="default",state="closed"} 1`,
		`belfry_endpoint_breaker_opened_total{endpoint="` + first.Key + `",route="default"} 3`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestAnEndpointIsTrippedUnlessItsBreakerIsClosed(t *testing.T) {
	for _, c := range []struct {
		state   balance.State
		breaker breaker.State
		healthy bool
		want    Condition
	}{
		{balance.Ready, breaker.Closed, true, Ready},
		{balance.NotReady, breaker.Closed, true, NotReady},
		{balance.NotReady, breaker.Open, true, Tripped},
		{balance.Ready, breaker.HalfOpen, true, Tripped},
		{balance.BackingOff, breaker.Open, true, Tripped},
		{balance.NotReady, breaker.Open, false, Unhealthy},
		{balance.Draining, breaker.Open, true, Removed},
		{balance.Closed, breaker.Open, true, Closed},
	} {
		e := proxy.EndpointState{
			EndpointStats: balance.EndpointStats{State: c.state},
			Health:        &proxy.HealthState{Healthy: c.healthy},
			Breaker:       &breaker.Stats{State: c.breaker},
		}
		if got := conditionOf(e, false); got != c.want {
			t.Errorf("%+v: %s, want %s", c, got, c.want)
		}
	}
}
