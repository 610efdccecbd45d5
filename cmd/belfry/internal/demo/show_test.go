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
)

// measured is a measurement with a known share and latency for each endpoint.
func measured(policy string, perEndpoint int, fail int) *measurement {
	m := newMeasurement(policy)
	for i := range spread {
		for range perEndpoint * (i + 1) {
			m.sent.Add(1)
			m.endpoints[i].Record(spread[i])
			m.latency.Record(spread[i])
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
		m := newMeasurement("random")
		due := time.Now()
		time.Sleep(200 * time.Millisecond) // The machine was busy.
		m.began(due)
		time.Sleep(50 * time.Millisecond)
		m.ended(due, 3, nil, false)
		if p50, _ := m.endpoints[3].Quantile(0.5); p50 != 250*time.Millisecond {
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
	res := measured("random", 100, 3).result()
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
	if few := measured("random", 90, 0).result(); few.P999 != nil || few.P99 == nil {
		t.Errorf("with %d requests p99 is %v and p99.9 is %v, want it left out below %d", few.Requests, few.P99, few.P999, minForP999)
	}
	if none := newMeasurement("random").result(); none.P50 != nil || none.Endpoints[0].Share != 0 {
		t.Errorf("without answers p50 is %v", none.P50)
	}
}

func TestJSONHasTheDocumentedShape(t *testing.T) {
	var out bytes.Buffer
	if err := (Result{Policies: []PolicyResult{measured("random", 1, 0).result()}}).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got map[string][]map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	p := got["policies"][0]
	for _, key := range []string{"name", "requests", "errors", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "endpoints"} {
		if _, ok := p[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	if len(p) != 8 || p["p999_ms"] != nil {
		t.Errorf("got %v", p)
	}
	first := p["endpoints"].([]any)[0].(map[string]any)
	if len(first) != 2 || first["max_latency_ms"] != 1.0 || first["share"] == nil {
		t.Errorf("an endpoint reads %v", first)
	}
	out.Reset()
	if err := (Result{}).WriteJSON(&out); err != nil || !strings.Contains(out.String(), "[]") {
		t.Errorf("an empty result reads %q, %v", out.String(), err)
	}
}

func TestComparisonReadsAtEightyColumns(t *testing.T) {
	got := comparison(Config{Duration: 6 * time.Second, Rate: 1000, Seed: 1},
		[]PolicyResult{measured("random", 2000, 0).result(), measured("inflight", 2000, 12).result(), measured("peakewma", 20, 0).result()}, false, styles{})
	want := `
Latency from the moment a request was due
1,000 requests/s for 6s each, seed 1

                    random   inflight   peakewma
────────────────────────────────────────────────
requests           110,000    110,012      1,100
errors                   0         12          0
p50               100.1 ms   100.1 ms   100.1 ms
p90              1000.0 ms  1000.0 ms  1000.0 ms
p99              1000.0 ms  1000.0 ms  1000.0 ms
p99.9            1000.0 ms  1000.0 ms          –

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
	busy := measured("peakewma", 20, 0)
	for range 100 {
		busy.late.Record(100 * time.Millisecond)
	}
	got = comparison(Config{}, []PolicyResult{measured("random", 20, 0).result(), busy.result()}, true, styles{})
	for _, want := range []string{"This machine was busy: under peakewma, 1 % of the requests were sent 100ms or", "seed 0, but interrupted\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if got := comparison(Config{}, nil, false, styles{}); got != "Nothing was measured.\n" {
		t.Errorf("without a policy: %q", got)
	}
}

// boardOf is a board in the middle of a policy, begun two seconds before the time it is looked at.
func boardOf(t *testing.T, m *measurement) *board {
	t.Helper()
	servers := make([]*server, len(spread))
	for i, most := range spread {
		servers[i] = &server{number: i, most: most}
	}
	b := &board{cfg: Config{Duration: 6 * time.Second, Rate: 1000}, servers: servers, stack: "buffer → balance"}
	if m != nil {
		b.begin(m)
	}
	return b
}

func TestPlainWritesALineForEachSecondOfAPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := measured("random", 10, 2)
		b := boardOf(t, m)
		var out bytes.Buffer
		finished := make(chan struct{})
		go func() {
			time.Sleep(2510 * time.Millisecond)
			b.end(m.result())
			b.begin(measured("inflight", 1, 0))
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
	b := boardOf(t, nil)
	b.stack = describe(b.cfg)
	text := intro(b)
	for _, want := range []string{"10 HTTP servers", "1,000 requests/s", "for 6s each", "load shed", "random | inflight | peakewma"} {
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

func TestScreenFitsItsTerminal(t *testing.T) {
	b := boardOf(t, nil)
	b.end(measured("random", 2000, 0).result())
	m := measured("inflight", 2000, 0)
	b.begin(m)
	for _, width := range []int{80, 120, 60} {
		s := &screen{board: b, width: 80}
		s.Update(tea.WindowSizeMsg{Width: width, Height: 30})
		s.Update(tick(m.started.Add(2 * time.Second)))
		text := s.View().Content
		if !strings.Contains(text, "inflight  policy 1 of 3, 4.0 s left") || !strings.Contains(text, "up to 1000 ms") || !strings.Contains(text, "✓ random") {
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
	s := &screen{board: boardOf(t, measured("random", 1, 0)), stop: func() { presses++ }, width: 80}
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
