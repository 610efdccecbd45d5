package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab"
)

// planned is a scenario as it runs for six seconds.
func planned(t *testing.T, scenario string) plan {
	t.Helper()
	p, err := Config{Scenario: scenario, Duration: 6 * time.Second, Seed: 1}.plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// measured is a measurement of the spread with a known share and latency for each endpoint.
func measured(t *testing.T, policy string, perEndpoint int, fail int) *measurement {
	t.Helper()
	m := newMeasurement(policy, planned(t, "spread").Demo, time.Now())
	for i, s := range m.demo.Servers {
		for range perEndpoint * (i + 1) {
			m.sent.Add(1)
			m.endpoints[i].latency.Record(s.Most)
			m.latency.Record(s.Most)
			m.answered(m.started, i)
		}
	}
	for range fail {
		m.began(time.Now())
		m.ended(time.Now(), 0, errors.New("refused"), false)
	}
	return m
}

func TestLatencyCountsFromWhenARequestWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMeasurement("random", planned(t, "spread").Demo, time.Now())
		due := time.Now()
		time.Sleep(200 * time.Millisecond) // The machine was busy.
		m.began(due)
		time.Sleep(50 * time.Millisecond)
		m.ended(due, 3, nil, false)
		if p50, _ := m.endpoints[3].latency.Quantile(0.5); p50 != 250*time.Millisecond {
			t.Errorf("the latency is %v, want 250 ms", p50)
		}
		if late, _ := m.late.Quantile(1); late != 200*time.Millisecond {
			t.Errorf("it was sent %v late, want 200 ms", late)
		}
		m.began(due)
		m.ended(due, 0, errors.New("cut off"), true)
		if res := m.result(); res.Requests != 1 || res.Errors != 0 {
			t.Errorf("with one cut off by the user: %d requests, %d errors", res.Requests, res.Errors)
		}
	})
}

func TestResultCountsEverything(t *testing.T) {
	res := measured(t, "random", 100, 3).result()
	if res.Requests != 5503 || res.Errors != 3 || res.firstError == nil {
		t.Errorf("%d requests, %d errors, first %v", res.Requests, res.Errors, res.firstError)
	}
	sum := 0.0
	for i, e := range res.Endpoints {
		sum += e.Share
		if want := float64(i+1) / 55; e.Share < want-1e-9 || e.Share > want+1e-9 {
			t.Errorf("endpoint %d has a share of %v, want %v", i, e.Share, want)
		}
	}
	if sum < 1-1e-9 || sum > 1+1e-9 {
		t.Errorf("shares sum to %v", sum)
	}
	if res.P999 == nil || *res.P50 < 99.6 || *res.P50 > 100.4 {
		t.Errorf("p50 %v, p99.9 %v", res.P50, res.P999)
	}
	if few := measured(t, "random", 90, 0).result(); few.P999 != nil || few.P99 == nil {
		t.Errorf("with %d requests p99 is %v and p99.9 is %v, want it left out below %d", few.Requests, few.P99, few.P999, minForP999)
	}
	if none := newMeasurement("random", planned(t, "spread").Demo, time.Now()).result(); none.P50 != nil || none.Endpoints[0].Share != 0 {
		t.Errorf("without answers p50 is %v", none.P50)
	}
}

func TestJSONHasTheDocumentedShape(t *testing.T) {
	var out bytes.Buffer
	if err := (Result{Scenario: "spread", Policies: []PolicyResult{measured(t, "random", 1, 0).result()}}).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Scenario string
		Policies []map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	p := got.Policies[0]
	for _, key := range []string{
		"name", "requests", "errors", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "odd_share", "stuck", "failed", "lab", "endpoints",
	} {
		if _, ok := p[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	if got.Scenario != "spread" || len(p) != 12 || p["p999_ms"] != nil {
		t.Errorf("got %v", p)
	}
	first := p["endpoints"].([]any)[0].(map[string]any)
	if len(first) != 3 || first["label"] != "up to    1 ms" || first["max_latency_ms"] != 1.0 || first["share"] == nil {
		t.Errorf("an endpoint reads %v", first)
	}
	out.Reset()
	if err := (Result{}).WriteJSON(&out); err != nil || !strings.Contains(out.String(), "[]") {
		t.Errorf("an empty result reads %q, %v", out.String(), err)
	}
}

func TestComparisonReadsAtEightyColumns(t *testing.T) {
	random := measured(t, "random", 2000, 0).result()
	random.Lab = &LabResult{P99: 990, Figures: Figures{OddShare: 0.5}}
	got := conclusion(planned(t, "spread"),
		[]PolicyResult{random, measured(t, "inflight", 2000, 12).result(), measured(t, "peakewma", 20, 0).result()}, false, styles{})
	want := `
Latency from the moment a request was due
scenario spread, 1,000 requests/s for 6s each, seed 1

                    random   inflight   peakewma
────────────────────────────────────────────────
requests           110,000    110,012      1,100
errors                   0         12          0
p50               100.1 ms   100.1 ms   100.1 ms
p90              1000.0 ms  1000.0 ms  1000.0 ms
p99              1000.0 ms  1000.0 ms  1000.0 ms
  in the lab      990.0 ms          –          –
p99.9            1000.0 ms  1000.0 ms          –

slower half         72.7 %     72.7 %     72.7 %
  in the lab        50.0 %          –          –

answered by
  up to    1 ms      1.8 %      1.8 %      1.8 %
  up to    5 ms      3.6 %      3.6 %      3.6 %
  up to   10 ms      5.5 %      5.5 %      5.5 %
  up to   10 ms      7.3 %      7.3 %      7.3 %
  up to   10 ms      9.1 %      9.1 %      9.1 %
  up to  100 ms     10.9 %     10.9 %     10.9 %
  up to  100 ms     12.7 %     12.7 %     12.7 %
  up to  100 ms     14.5 %     14.5 %     14.5 %
  up to  500 ms     16.4 %     16.4 %     16.4 %
  up to 1000 ms     18.2 %     18.2 %     18.2 %

p99 under random is 1.0 times that under peakewma.
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	busy := measured(t, "peakewma", 20, 0)
	for range 100 {
		busy.late.Record(100 * time.Millisecond)
	}
	got = conclusion(plan{Demo: lab.Demo{Name: "x"}}, []PolicyResult{measured(t, "random", 20, 0).result(), busy.result()}, true, styles{})
	for _, want := range []string{"This machine was busy: under peakewma, 1 % of the requests were sent 100ms or", "seed 0, but interrupted\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if got := conclusion(plan{}, nil, false, styles{}); got != "Nothing was measured.\n" {
		t.Errorf("without a policy: %q", got)
	}
}

func TestComparisonShowsWhatMattersInAScenario(t *testing.T) {
	over := []string{"over 500 ms 20 2,000", "in the lab 16.9 –", "Requests over 500 ms: 20 under expected, 2,000 under random."}
	for scenario, want := range map[string][]string{
		"slow":       append(over, "slow server 4.0 % 9.1 % 4.0 % 9.1 % in the lab 3.0 % –"),
		"hang":       append(over, "hung server 4.0 % 9.1 %"),
		"fast-fail":  {"failing server 4.0 % 9.1 %", "failed 0 3,000", "Failed requests: 0 under expected, 3,000 under random."},
		"cold-start": append(over, "new server 4.0 % 9.1 %"),
		"one-stuck":  {"server that lost one 4.0 % 9.1 %", "Share of the server that lost one: 4.0 % under expected, 9.1 % under random."},
	} {
		// As wide as numbers get.
		few := PolicyResult{Name: "expected", Requests: 5_000_000_000, Figures: Figures{OddShare: 0.04, Stuck: 20}, Lab: &LabResult{Figures: Figures{OddShare: 0.03, Stuck: 16.9}}}
		many := PolicyResult{Name: "random", Requests: 5_000_000_000, Figures: Figures{OddShare: 0.091, Stuck: 2000, Failed: 3000}}
		got := conclusion(planned(t, scenario), []PolicyResult{few, many, few, many}, false, styles{})
		for _, part := range want {
			if !strings.Contains(strings.Join(strings.Fields(got), " "), part) {
				t.Errorf("%s: %q is missing in\n%s", scenario, part, got)
			}
		}
		if strings.Contains(got, "answered by") {
			t.Errorf("%s lists servers that are alike:\n%s", scenario, got)
		}
		for line := range strings.Lines(got) {
			if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); w > 80 {
				t.Errorf("%s: a line takes %d columns: %q", scenario, w, line)
			}
		}
	}
}

func TestOnlyAFailureThatIsMeantIsNone(t *testing.T) {
	for scenario, meant := range map[string]bool{"fast-fail": true, "hang": false} {
		p := planned(t, scenario)
		m := newMeasurement("random", p.Demo, time.Now())
		m.began(m.started)
		m.ended(m.started, p.Odd, &meantError{"500 Internal Server Error"}, false)
		res := m.result()
		if (res.Failed == 1) != meant || (res.Errors == 0) != meant || (Result{Policies: []PolicyResult{res}}).Failed() == meant {
			t.Errorf("%s: %v failed, %d errors (%v)", scenario, res.Failed, res.Errors, res.firstError)
		}
		if meant && (res.Endpoints[p.Odd].Share != 1 || res.P50 != nil) {
			t.Errorf("%s: the failure counts as %v of the answers, with p50 %v", scenario, res.Endpoints[p.Odd].Share, res.P50)
		}
	}
}

func TestOddServersCountWhileItMatters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := planned(t, "hang") // from 1.5 s to 4.5 s
		m := newMeasurement("random", p.Demo, time.Now())
		for _, at := range []time.Duration{0, 1499 * time.Millisecond, 1500 * time.Millisecond, 4499 * time.Millisecond, 4500 * time.Millisecond} {
			due := m.started.Add(at)
			m.began(due)
			m.ended(due, p.Odd, nil, false)
		}
		time.Sleep(2 * time.Second)
		due := m.started.Add(2 * time.Second)
		m.began(due)
		m.ended(due, 0, nil, false)
		if res := m.result(); res.OddShare != 2.0/3 || res.Stuck != 0 {
			t.Errorf("the odd share is %v, and %v are stuck", res.OddShare, res.Stuck)
		}
		m.began(m.started)
		m.ended(m.started, 0, nil, false)
		if res := m.result(); res.Stuck != 1 {
			t.Errorf("%v are stuck, want the one that took 2 s", res.Stuck)
		}
	})
}

// boardOf is a board in the middle of a policy, begun two seconds before the time it is looked at.
func boardOf(t *testing.T, m *measurement) *board {
	t.Helper()
	p := planned(t, "spread")
	servers := make([]*server, len(p.Servers))
	for i := range servers {
		servers[i] = newServer(p, i)
	}
	b := &board{plan: p, servers: servers, stack: "buffer → balance"}
	if m != nil {
		b.begin(m)
	}
	return b
}

func TestPlainWritesALineForEachSecondOfAPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := measured(t, "random", 10, 2)
		b := boardOf(t, m)
		var out bytes.Buffer
		finished := make(chan struct{})
		go func() {
			time.Sleep(2510 * time.Millisecond)
			b.end(m.result())
			b.begin(measured(t, "inflight", 1, 0))
			time.Sleep(1100 * time.Millisecond)
			close(finished)
		}()
		plain(&out, b, finished)
		want := `random      1s  552 requests, 552/s, p50 100.1 ms, p99 1000.0 ms, 0 in flight, 2 errors
random      2s  552 requests, 0/s, p50 100.1 ms, p99 1000.0 ms, 0 in flight, 2 errors
random    done: 552 requests, p50 100.1 ms, p99 1000.0 ms, 2 errors
inflight    1s  55 requests, 55/s, p50 100.1 ms, p99 1000.0 ms, 0 in flight
`
		if text := out.String(); text != want {
			t.Errorf("got\n%s\nwant\n%s", text, want)
		}
	})
}

func TestTheIntroductionFitsEightyColumns(t *testing.T) {
	for _, scenario := range lab.DemoNames() {
		b := boardOf(t, nil)
		b.plan = planned(t, scenario)
		b.stack = describe(b.plan)
		text := intro(b)
		for _, want := range []string{b.plan.About, "0 requests/s", "4 times, for 6s each", "load shed", "random | inflight | peakewma | expected"} {
			if !strings.Contains(strings.ReplaceAll(text, "\n", " "), want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
		for line := range strings.Lines(text) {
			if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); w > 80 {
				t.Errorf("a line takes %d columns: %q", w, line)
			}
		}
	}
}

func TestScreenFitsItsTerminal(t *testing.T) {
	b := boardOf(t, nil)
	b.end(measured(t, "random", 2000, 0).result())
	m := measured(t, "inflight", 2000, 0)
	b.begin(m)
	for _, width := range []int{80, 120, 60} {
		s := &screen{board: b, width: 80}
		s.Update(tea.WindowSizeMsg{Width: width, Height: 30})
		s.Update(tick(m.started.Add(2 * time.Second)))
		text := s.View().Content
		if !strings.Contains(text, "inflight  policy 1 of 4, 4.0 s left") || !strings.Contains(text, "up to 1000 ms") || !strings.Contains(text, "✓ random") {
			t.Errorf("the picture lacks a part:\n%s", text)
		}
		for line := range strings.Lines(text) {
			if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); w > max(width, 80) {
				t.Errorf("at %d columns a line takes %d: %q", width, w, line)
			}
		}
	}
}

func TestScreenStopsByKeyAndEndsEmpty(t *testing.T) {
	presses := 0
	s := &screen{board: boardOf(t, measured(t, "random", 1, 0)), stop: func() { presses++ }, width: 80}
	s.Update(tick(time.Now()))
	s.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	s.Update(tea.KeyPressMsg{Code: 'x'})
	if presses != 1 || !strings.Contains(s.View().Content, "stopping") {
		t.Errorf("%d presses, and the picture is\n%s", presses, s.View().Content)
	}
	s.Update(ended{})
	if got := s.View().Content; got != "" {
		t.Errorf("at the end the picture is %q", got)
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		share float64
		room  int
		want  string
	}{
		{0, 10, "          "},
		{0.5, 10, "██████████"},
		{0.9, 10, "██████████"},
		{0.25, 10, "█████     "},
		{0.0125, 10, "▎         "},
		{0.5, 3, ""},
		{0.5, 100, strings.Repeat("█", 40)},
	} {
		if got := bar(c.share, c.room); got != c.want {
			t.Errorf("%v in %d cells: %q, want %q", c.share, c.room, got, c.want)
		}
	}
}

func TestNothingHasNoLatency(t *testing.T) {
	if got := counts(view{sent: 3, inFlight: 3}, 3); got != "3 requests, 3/s, p50 –, p99 –, 3 in flight" {
		t.Errorf("before the first answer: %q", got)
	}
}

func TestMeter(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	var m meter
	for _, c := range []struct {
		since time.Time
		at    float64
		count int64
		want  float64
	}{
		{start, 0, 0, 0},
		{start, 0.5, 100, 200},
		{start, 1, 200, 200},
		{start, 1.5, 200, 100}, // over the last second
		{start, 2.5, 200, 0},
		{at(2.5), 3, 50, 100}, // a new run
	} {
		if got := m.observe(c.since, at(c.at), c.count); got != c.want {
			t.Errorf("at %v s: %v/s, want %v", c.at, got, c.want)
		}
	}
}
