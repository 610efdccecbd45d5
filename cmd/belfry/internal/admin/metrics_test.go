package admin

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

func TestMetricsHaveTheNumbersOfTheState(t *testing.T) {
	at := time.Now()
	p := busy(at)
	a := New(p)
	traffic(a, p, at)
	for range 3 {
		p.admit(2 * time.Millisecond)
	}
	p.change(func(s *proxy.State) {
		s.Endpoints[0].Health = &proxy.HealthState{Changes: 4}
		s.Endpoints[1].Breaker = &breaker.Stats{Refused: 77}
		s.Endpoints[1].Reports, s.Endpoints[1].BadReports = 31, 2
		s.Probes = balance.ProbeStats{Sent: 90, Failed: 8, Refused: 6}
	})
	text := ask(a, http.MethodGet, "/metrics").Body.String()
	for _, want := range []string{
		`belfry_layer_refusals_total{layer="buffer",route="default"} 9`,
		`belfry_layer_refusals_total{layer="concurrency limit",route="default"} 40`,
		`belfry_buffer_wait_seconds_bucket{route="default",le="0.001"} 0`,
		`belfry_buffer_wait_seconds_bucket{route="default",le="0.0025"} 3`,
		`belfry_endpoint_health_changes_total{endpoint="http://10.0.0.2:8080",route="default"} 4`,
		`belfry_requests_total{route="default"} 1.235095e+06`,
		`belfry_requests_in_flight{route="default"} 57`,
		`belfry_rejections_total{reason="buffer: full",route="default"} 12`,
		`belfry_request_duration_seconds_count{outcome="success",route="default"} 492`,
		`belfry_request_duration_seconds_count{outcome="timeout",route="default"} 0`,
		`belfry_request_duration_seconds_bucket{outcome="success",route="default",le="0.01"} 360`,
		`belfry_retries_total{route="default"} 457`,
		`belfry_retries_refused_total{reason="budget",route="default"} 3`,
		`belfry_retry_budget_balance{route="default"} 98.7`,
		`belfry_hedges_total{route="default"} 61`,
		`belfry_hedges_won_total{route="default"} 17`,
		`belfry_hedges_refused_total{reason="budget",route="default"} 5`,
		`belfry_hedges_refused_total{reason="no_room",route="default"} 4`,
		`belfry_hedges_refused_total{reason="request",route="default"} 2`,
		`belfry_endpoint_breaker_refused_total{endpoint="http://10.0.0.1:8080",route="default"} 77`,
		`belfry_endpoint_load_reports_total{endpoint="http://10.0.0.1:8080",outcome="valid",route="default"} 31`,
		`belfry_endpoint_load_reports_total{endpoint="http://10.0.0.1:8080",outcome="invalid",route="default"} 2`,
		`belfry_load_probes_total{route="default"} 90`,
		`belfry_load_probes_failed_total{route="default"} 8`,
		`belfry_load_probes_refused_total{route="default"} 6`,
		`belfry_limit_in_flight{route="default"} 53`,
		`belfry_buffer_queued{route="default"} 4`,
		`belfry_endpoint_state{endpoint="http://10.0.0.2:8080",route="default",state="not ready"} 1`,
		`belfry_endpoint_state{endpoint="http://10.0.0.2:8080",route="default",state="ready"} 0`,
		`belfry_endpoint_in_flight{endpoint="http://10.0.0.1:8080",route="default"} 13`,
		`belfry_endpoint_latency_seconds{endpoint="http://10.0.0.1:8080",route="default"} 0.004321`,
		`belfry_endpoint_attempts_total{endpoint="http://10.0.0.2:8080",outcome="failure",route="default"} 24`,
		`belfry_endpoint_share{endpoint="http://10.0.0.3:8080",route="default"} 0`,
		`belfry_config_generation 3`,
		`belfry_draining 0`,
		"go_goroutines ",
		"process_open_fds ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		if strings.HasPrefix(problem.Metric, "belfry_") {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
}

func TestMetricsAreLabelledByNothingOfARequest(t *testing.T) {
	at := time.Now()
	p := busy(at)
	a := New(p)
	series := func() int { return strings.Count(ask(a, http.MethodGet, "/metrics").Body.String(), "\nbelfry_") }
	p.note(proxy.Record{Method: "GET", Host: "a.example", Path: "/1", Status: 503, Reason: "buffer: full", Endpoint: "x"})
	before := series()
	for i := range 100 {
		p.note(proxy.Record{Method: string(rune('A' + i)), Host: strings.Repeat("h", i), Path: strings.Repeat("p", i), Status: 200 + i, Endpoint: string(rune('a' + i))})
	}
	if after := series(); after != before {
		t.Errorf("%d series became %d", before, after)
	}
	labels := map[string]bool{"route": true, "outcome": true, "reason": true, "endpoint": true, "layer": true, "state": true, "le": true, "version": true, "goversion": true}
	text := ask(a, http.MethodGet, "/metrics").Body.String()
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "belfry_") {
			continue
		}
		for _, label := range regexp.MustCompile(`[{,](\w+)=`).FindAllStringSubmatch(line, -1) {
			if !labels[label[1]] {
				t.Errorf("an unknown label in %s", line)
			}
		}
	}
}

func TestAnEndpointThatIsThereTwiceIsOneSeries(t *testing.T) {
	at := time.Now()
	p := busy(at)
	for _, oldFirst := range []bool{true, false} {
		p.change(func(s *proxy.State) {
			old, again := s.Endpoints[0], s.Endpoints[0]
			old.State, old.InFlight, old.Successes, old.Reports = balance.Draining, 3, 100, 5
			again.State, again.InFlight, again.Successes, again.Reports = balance.Ready, 4, 20, 2
			s.Endpoints = []proxy.EndpointState{old, again}
			if !oldFirst {
				s.Endpoints = []proxy.EndpointState{again, old}
			}
		})
		w := ask(New(p), http.MethodGet, "/metrics")
		for _, want := range []string{
			`belfry_endpoint_state{endpoint="http://10.0.0.2:8080",route="default",state="ready"} 1`,
			`belfry_endpoint_in_flight{endpoint="http://10.0.0.2:8080",route="default"} 7`,
			`belfry_endpoint_attempts_total{endpoint="http://10.0.0.2:8080",outcome="success",route="default"} 120`,
			`belfry_endpoint_load_reports_total{endpoint="http://10.0.0.2:8080",outcome="valid",route="default"} 7`,
		} {
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
				t.Errorf("old first %v: %d, %s is missing", oldFirst, w.Code, want)
			}
		}
	}
}

// documented is where metrics are explained.
const documented = "../../../../docs/admin.md"

func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(documented)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(belfry_\\w+)` \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		rows[row[1]] = strings.TrimSpace(row[2])
	}
	at := time.Now()
	p := busy(at)
	p.state.Endpoints[0].Health = &proxy.HealthState{}
	p.state.Endpoints[0].Breaker = &breaker.Stats{}
	a := New(p)
	traffic(a, p, at)
	gathered, err := a.registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range gathered {
		if !strings.HasPrefix(family.GetName(), "belfry_") {
			continue
		}
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+label.GetName()+"`")
		}
		want, ok := rows[family.GetName()]
		if got := strings.Join(labels, ", "); !ok || got != want {
			t.Errorf("%s has labels %s, documented %v: %s\n| `%s` | %s | %s |", family.GetName(), got, ok, want, family.GetName(), got, family.GetHelp())
		}
		delete(rows, family.GetName())
	}
	for name := range rows {
		t.Errorf("%s is documented, and not there", name)
	}
}
