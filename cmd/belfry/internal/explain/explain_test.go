package explain

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/admin"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fleet is four endpoints that are all alike, at 100 requests a second. Change changes them, and is given the one that is asked about.
func fleet(change func(s *admin.Snapshot, e *admin.Endpoint)) admin.Snapshot {
	s := admin.Snapshot{Time: now, WindowSeconds: 10, Requests: admin.Requests{Rate: 100}}
	for _, name := range []string{"a", "b", "c", "d"} {
		s.Endpoints = append(s.Endpoints, admin.Endpoint{
			Key: "http://" + name + ":80", Addr: name + ":80", Condition: admin.Ready, Weight: 1, Rate: 25, Share: new(0.25), Latency: new(10.0), Limit: 40, InFlight: 1,
		})
	}
	if change != nil {
		change(&s, &s.Endpoints[0])
	}
	return s
}

func TestReasonsInWords(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *admin.Snapshot, e *admin.Endpoint)
		want   string
	}{
		"nothing": {nil, "Nothing keeps it from its share."},
		"removed": {func(_ *admin.Snapshot, e *admin.Endpoint) { e.Condition, e.InFlight = admin.Removed, 2 }, "It was removed, and only finishes what it has: 2 in flight."},
		"closed":  {func(_ *admin.Snapshot, e *admin.Endpoint) { e.Condition = admin.Closed }, "It is closed for good."},
		"unhealthy": {func(_ *admin.Snapshot, e *admin.Endpoint) {
			e.Condition, e.Health = admin.Unhealthy, &admin.Health{Since: now.Add(-42 * time.Second), LastError: "503 Service Unavailable"}
			e.Ejected = []string{"health"}
		}, "It is unhealthy: its probes fail, for 42 s now, and it is not asked until they succeed: 503 Service Unavailable."},
		"unhealthy, and one too many": {func(_ *admin.Snapshot, e *admin.Endpoint) {
			e.Condition, e.Health = admin.Unhealthy, &admin.Health{Since: now.Add(-42 * time.Second)}
		}, "It is unhealthy: its probes fail, for 42 s now, and it is asked all the same, for as many endpoints as may be are left alone already."},
		"healthy": {func(_ *admin.Snapshot, e *admin.Endpoint) { e.Health = &admin.Health{Healthy: true} }, "Nothing keeps it from its share."},
		"tripped": {func(_ *admin.Snapshot, e *admin.Endpoint) {
			e.Condition = admin.Tripped
			e.Breaker = &admin.Breaker{State: "open", Since: now.Add(-3 * time.Second), NextProbe: new(now.Add(1500 * time.Millisecond)), LastError: "EOF"}
		}, "Its breaker has tripped: it is open, for 3 s now, and in 1.5 s one request tries it: EOF."},
		"half-open": {func(_ *admin.Snapshot, e *admin.Endpoint) {
			e.Condition, e.Breaker = admin.Tripped, &admin.Breaker{State: "half-open", Since: now}
		}, "Its breaker has tripped: it is half-open, for 0 s now, and one request tries it now."},
		"an outlier that fails": {func(_ *admin.Snapshot, e *admin.Endpoint) {
			e.Condition, e.Ejected, e.EjectedSeconds = admin.Ejected, []string{"outlier"}, 25
			e.Outlier = &admin.Outlier{Calls: 100, Success: 0.8, MedianSuccess: 0.999}
		}, "It is ejected until 12:00:25 UTC, for 25 s more, because it does worse than its peers (80 % good answers, where the median is 99.9 %)."},
		"an outlier that is slow": {func(_ *admin.Snapshot, e *admin.Endpoint) {
			e.Condition, e.Ejected, e.EjectedSeconds = admin.Ejected, []string{"outlier", "overload"}, 300
			e.Outlier = &admin.Outlier{Calls: 100, Success: 1, MedianSuccess: 1, Latency: 300, MedianLatency: 10}
		}, "It is ejected until 12:05:00 UTC, for 5m0s more, because it does worse than its peers (300 ms, where the median is 10 ms), and because it has asked for it, by Retry-After."},
		"backing off": {func(_ *admin.Snapshot, e *admin.Endpoint) {
			e.Condition, e.NotReady = admin.BackingOff, "connection refused"
		}, "It could not be reached, or refused, and is left alone between one try and the next: connection refused."},
		"dialling": {func(_ *admin.Snapshot, e *admin.Endpoint) { e.Condition = admin.Dialling }, "It is new, and was not reached yet."},
		"a later priority": {func(s *admin.Snapshot, e *admin.Endpoint) {
			e.Priority, s.Endpoints[1].Priority, s.Endpoints[2].Condition = 1, 1, admin.Unhealthy
		}, "Its priority is 1, and 1 endpoint of lower number, from 0 on, can be used: these come first."},
		"another zone": {func(s *admin.Snapshot, e *admin.Endpoint) {
			s.Zone, e.Zone, s.Endpoints[1].Zone = "eu-1", "eu-2", "eu-1"
		}, "It is in zone eu-2, and the proxy in eu-1: endpoints there are preferred while they have room and are not slow."},
		"another zone, and nobody in the proxy's": {func(s *admin.Snapshot, e *admin.Endpoint) { s.Zone, e.Zone = "eu-1", "eu-2" }, "Nothing keeps it from its share."},
		"failing": {
			func(_ *admin.Snapshot, e *admin.Endpoint) { e.Failed, e.LastError = 10, "500" },
			"It is failing: 40 % of its attempts did in the last 10 s, and that makes it cost more: 500.",
		},
		"failing before": {
			func(_ *admin.Snapshot, e *admin.Endpoint) { e.Condition, e.Rate = admin.Failing, 0 },
			"It is failing: most of the latest attempts there failed, and that makes it cost more.",
		},
		"slow": {
			func(_ *admin.Snapshot, e *admin.Endpoint) { e.Latency = new(123.456) },
			"It is slow: an answer is expected to take 123 ms there, 12.3 times the median of the others, 10 ms.",
		},
		"full": {func(_ *admin.Snapshot, e *admin.Endpoint) { e.Condition, e.Limit = admin.NotReady, 1 }, "It is not ready: 1 of its 1 places are taken."},
		"not ready": {
			func(_ *admin.Snapshot, e *admin.Endpoint) { e.Condition = admin.NotReady },
			"It is not ready: it had no room when it was last asked.",
		},
		"busy": {func(_ *admin.Snapshot, e *admin.Endpoint) { e.InFlight = 30 }, "It is busy: it has 30 in flight, and the median of the others is 1."},
		"slow start": {
			func(_ *admin.Snapshot, e *admin.Endpoint) { e.SlowStart = new(25.0) },
			"It is in its slow start, because it is new or has come back: for now that makes it cost 25 times as much.",
		},
		"a small weight": {func(s *admin.Snapshot, _ *admin.Endpoint) { s.Endpoints[1].Weight = 97 }, "Its weight is 1 of 100, and others have up to 97."},
		"few requests": {
			func(s *admin.Snapshot, _ *admin.Endpoint) { s.Requests.Rate = 0.3 },
			"There are few requests in all: 3 in the last 10 s, for 4 endpoints. Of so few chance may give it none.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fleet(c.change)
			if got := strings.Join(Endpoint(s, admin.Decisions{}, s.Endpoints[0]).Reasons, "\n"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// lately is four decisions between a and b: a was dearer, had no room, was chosen and failed, and was not drawn.
func lately() admin.Decisions {
	candidate := func(name string, cost float64, answer string) admin.Candidate {
		return admin.Candidate{Endpoint: "http://" + name + ":80", Cost: new(cost), Answer: answer}
	}
	one := func(i int, chosen, ended string, all ...admin.Candidate) admin.Decision {
		return admin.Decision{At: now.Add(time.Duration(i) * time.Second), Candidates: all, Chosen: "http://" + chosen + ":80", Ended: ended, Took: new(1.0)}
	}
	return admin.Decisions{Kept: true, Decisions: []admin.Decision{
		one(0, "b", "success", candidate("b", 10, "granted"), candidate("a", 240, "not asked")),
		one(1, "b", "success", candidate("a", 5, "refused"), candidate("b", 10, "granted")),
		one(2, "a", "failure", candidate("a", 5, "granted"), candidate("b", 10, "not asked")),
		one(3, "c", "success", candidate("c", 5, "granted"), candidate("b", 10, "not asked")),
	}}
}

func TestAllOfIt(t *testing.T) {
	s := fleet(func(_ *admin.Snapshot, e *admin.Endpoint) { e.Share, e.Latency = new(0.0123), new(240.0) })
	var got bytes.Buffer
	if err := Endpoint(s, lately(), s.Endpoints[0]).Write(&got); err != nil {
		t.Fatal(err)
	}
	const want = `http://a:80 is ready. It got 1.23 % of the attempts of the last 10 s; an equal part is 25 %.

- It is slow: an answer is expected to take 240 ms there, 24 times the median of the others, 10 ms.
- It has room now, and had none before. It refused 1 of the 2 times that it was asked in the latest decisions.

Of the latest 4 decisions, over 3 s, it was drawn or asked in 3, and chosen in 1. 1 time another came first: its cost was then 24 times that of the other, in the median. 1 time it had no room.
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestWhatDecisionsSay(t *testing.T) {
	s := fleet(func(s *admin.Snapshot, _ *admin.Endpoint) {
		for i := range s.Endpoints {
			s.Endpoints[i].Latency, s.Endpoints[i].Share = nil, nil
		}
		s.Endpoints[1].Weight = 3
	})
	d := admin.Decisions{Kept: true}
	if got := Endpoint(s, d, s.Endpoints[0]); got.Decisions != "There are no decisions yet." ||
		got.Summary != "http://a:80 is ready. Nothing was sent to anybody in the last 10 s; its part by weight is 16.7 %." {
		t.Errorf("%+v", got)
	}
	for i := range 10 {
		for name, took := range map[string]float64{"a": 30, "b": 10} {
			ended := "success"
			if name == "a" && i == 0 {
				ended = "failure"
			}
			d.Decisions = append(d.Decisions, admin.Decision{At: now, Chosen: "http://" + name + ":80", Ended: ended, Took: new(took)})
		}
	}
	got := strings.Join(Endpoint(s, d, s.Endpoints[0]).Reasons, "\n")
	for _, want := range []string{
		"It is slow: an answer is expected to take 30 ms there, 3 times the median of the others, 10 ms.",
		"It is failing: 10 % of its attempts did in the latest decisions, and that makes it cost more.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// Of a hundred requests a gets so many; the others go to b. Four in ten are drawn, or six; for the others a key or probes say who is asked.
func TestRequestsThatBelongElsewhere(t *testing.T) {
	const nothing = "Nothing keeps it from its share."
	for by, why := range map[string]string{
		"key":    "Few requests have a key that is its own: 60 % of the latest decisions were for requests that go where their key belongs.",
		"metric": "Probes show others that are better: 60 % of the latest decisions went by probes, and 0 % of those to it.",
	} {
		for _, c := range []struct {
			got, all, drawn int
			want            string
		}{
			{3, 100, 4, why},
			{40, 100, 4, nothing},
			{3, 100, 6, nothing},
			{3, 30, 4, nothing},
		} {
			d := admin.Decisions{Kept: true}
			for i := range c.all {
				one := admin.Decision{At: now, By: by, Chosen: "http://b:80", Ended: "in flight"}
				if i%10 < c.drawn {
					one.By = "draw"
				}
				if i < c.got {
					one.Chosen = "http://a:80"
				}
				d.Decisions = append(d.Decisions, one)
			}
			s := fleet(nil)
			if got := strings.Join(Endpoint(s, d, s.Endpoints[0]).Reasons, "\n"); got != c.want {
				t.Errorf("by %s, %+v: got %s", by, c, got)
			}
		}
	}
}

func TestFindByKeyOrAddress(t *testing.T) {
	s := fleet(func(s *admin.Snapshot, e *admin.Endpoint) {
		moved := *e
		moved.Rate, e.Condition = 99, admin.Removed
		s.Endpoints = append(s.Endpoints, moved)
	})
	for _, name := range []string{"http://a:80", "a:80"} {
		if e, err := Find(s, name); err != nil || e.Rate != 99 {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if _, err := Find(s, "z"); err == nil || !strings.Contains(err.Error(), "there are http://a:80, http://b:80") {
		t.Errorf("%v", err)
	}
}
