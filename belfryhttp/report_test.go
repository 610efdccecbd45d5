package belfryhttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/load"
)

func TestParseLoad(t *testing.T) {
	const bad, silent = -1., -2.
	for _, c := range []struct {
		name, header, value string
		want                float64
	}{
		{"a number", LoadHeader, "7", 7},
		{"a fraction", LoadHeader, " 0.25 ", 0.25},
		{"an exponent", LoadHeader, "1e3", 1000},
		{"nothing", LoadHeader, "", bad},
		{"below 0", LoadHeader, "-1", bad},
		{"a sign", LoadHeader, "+1", bad},
		{"no number", LoadHeader, "NaN", bad},
		{"infinity", LoadHeader, "Inf", bad},
		{"too much for a float", LoadHeader, "1e999", bad},
		{"too much for a count", LoadHeader, "1e30", bad},
		{"hexadecimal", LoadHeader, "0x10", bad},
		{"underscores", LoadHeader, "1_000", bad},
		{"a unit", LoadHeader, "7 requests", bad},
		{"two", LoadHeader, "7, 8", bad},
		{"long", LoadHeader, strings.Repeat("1", 33), bad},

		{"ORCA text", ORCAHeader, "TEXT cpu_utilization=0.5,mem_utilization=0.9", 1},
		{"ORCA text with spaces", ORCAHeader, "TEXT mem_utilization=0.9, application_utilization=0.75, cpu_utilization=0.1", 3},
		{"ORCA text, in flight", ORCAHeader, "TEXT cpu_utilization=0.5,named_metrics.in_flight=12", 12},
		{"ORCA text, none in flight", ORCAHeader, "TEXT cpu_utilization=0.5,named_metrics.in_flight=0", 0},
		{"ORCA text, busier than can be", ORCAHeader, "TEXT cpu_utilization=2.5", 0.99 / (1 - 0.99)},
		{"ORCA text of something else", ORCAHeader, "TEXT named_metrics.kv_cache=0.4", silent},
		{"ORCA text, 0 is not given", ORCAHeader, "TEXT application_utilization=0,cpu_utilization=0.5", 1},
		{"ORCA text with a name twice", ORCAHeader, "TEXT cpu_utilization=0.5,cpu_utilization=0.4", bad},
		{"ORCA text without a number", ORCAHeader, "TEXT cpu_utilization=", bad},
		{"ORCA text without a name", ORCAHeader, "TEXT =0.5", bad},
		{"ORCA text without =", ORCAHeader, "TEXT cpu_utilization", bad},
		{"ORCA text with a bad number that does not matter", ORCAHeader, "TEXT cpu_utilization=0.5,eps=x", bad},
		{"ORCA text below 0", ORCAHeader, "TEXT cpu_utilization=-0.5", bad},
		{"ORCA text, empty", ORCAHeader, "TEXT ", bad},

		{"ORCA JSON", ORCAHeader, `JSON {"cpu_utilization": 0.5, "mem_utilization": 0.8}`, 1},
		{"ORCA JSON, in flight", ORCAHeader, `JSON {"named_metrics": {"in_flight": 4}, "cpu_utilization": 0.5}`, 4},
		{"ORCA JSON of something else", ORCAHeader, `JSON {"rps_fractional": 10}`, silent},
		{"ORCA JSON that is text", ORCAHeader, `JSON {"cpu_utilization": "0.5"}`, bad},
		{"ORCA JSON below 0", ORCAHeader, `JSON {"cpu_utilization": -0.5}`, bad},
		{"ORCA JSON and more", ORCAHeader, `JSON {"cpu_utilization": 0.5} {}`, bad},
		{"ORCA JSON cut off", ORCAHeader, `JSON {"cpu_utilization": 0.5`, bad},

		{"ORCA binary", ORCAHeader, "BIN AAAA", silent},
		{"ORCA of another form", ORCAHeader, "YAML cpu_utilization: 0.5", bad},
		{"ORCA without a form", ORCAHeader, "cpu_utilization=0.5", bad},
		{"ORCA, long", ORCAHeader, "TEXT cpu_utilization=0.5," + strings.Repeat("x", 4096) + "=1", bad},
		{"something else", "X-Other", "7", silent},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, said := ParseLoad(http.Header{c.header: {c.value}})
			got := r.InFlight
			switch {
			case !said:
				got = silent
			case !r.Valid():
				got = bad
			}
			if diff := got - c.want; diff > 1e-9 || diff < -1e-9 {
				t.Errorf("%q is %v, want %v", c.value, got, c.want)
			}
		})
	}
}

func TestParseLoadOfSeveralHeaders(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     http.Header
		valid bool
		want  load.Report
	}{
		{"two loads", http.Header{LoadHeader: {"1", "2"}}, false, load.Report{}},
		{"two of ORCA", http.Header{ORCAHeader: {"TEXT cpu_utilization=0.5", "TEXT cpu_utilization=0.5"}}, false, load.Report{}},
		{"with a latency", http.Header{LoadHeader: {"1"}, LoadLatencyHeader: {"1.5"}}, true, load.Report{InFlight: 1, Latency: 1500 * time.Microsecond}},
		{"with a bad latency", http.Header{LoadHeader: {"1"}, LoadLatencyHeader: {"soon"}}, false, load.Report{}},
		{"with a latency of ages", http.Header{LoadHeader: {"1"}, LoadLatencyHeader: {"1e18"}}, false, load.Report{}},
		{"of its own before ORCA", http.Header{LoadHeader: {"1"}, ORCAHeader: {"TEXT cpu_utilization=0.9"}}, true, load.Report{InFlight: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, said := ParseLoad(c.h)
			if !said || r.Valid() != c.valid || c.valid && r != c.want {
				t.Errorf("got %v, valid %v, said %v", r, r.Valid(), said)
			}
		})
	}
}

func FuzzParseLoad(f *testing.F) {
	f.Add("7", "0.5", "TEXT cpu_utilization=0.5")
	f.Add("", "", `JSON {"named_metrics":{"in_flight":1}}`)
	f.Fuzz(func(t *testing.T, inFlight, latency, orca string) {
		for _, h := range []http.Header{
			{LoadHeader: {inFlight}, LoadLatencyHeader: {latency}},
			{ORCAHeader: {orca}},
			{ORCAHeader: {"TEXT " + orca}},
			{ORCAHeader: {"JSON " + orca}},
		} {
			r, said := ParseLoad(h)
			if !said && r != (load.Report{}) {
				t.Errorf("%v says nothing, but %v", h, r)
			}
			// Whatever is read back must be the same: what is valid can be said.
			if said && r.Valid() {
				again, said := ParseLoad(http.Header{LoadHeader: {decimal(r.InFlight)}})
				if !said || again.InFlight != r.InFlight {
					t.Errorf("%v is read as %v", r.InFlight, again.InFlight)
				}
			}
		}
	})
}

// loaded is a server that says how busy it is, in answers to probes alone if it is to be asked.
func loaded(t *testing.T, cfg ReportConfig, served *atomic.Int64, ask bool) string {
	t.Helper()
	var plain http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		_, _ = io.WriteString(w, "done")
	})
	reporting := ReportLoad(plain, cfg)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ask && r.URL.Path != DefaultProbePath {
			plain.ServeHTTP(w, r)
			return
		}
		reporting.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// balanced sends n requests one after the other, and returns what the balancer says after them.
func balanced(t *testing.T, n int, metric load.Metric, cfg Config, urls ...string) balance.Stats {
	t.Helper()
	b, err := Balance(discover.List(urls...), balance.Config{Load: metric}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for b.Stats().Endpoints == nil || len(urls) != ready(b.Stats()) {
		permit, err := b.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.Release(permit)
	}
	for range n {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://any/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := belfry.Do(t.Context(), b, req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	for b.Stats().Probes.InFlight > 0 { // they are not to be missed in what follows
		runtime.Gosched()
	}
	return b.Stats()
}

func ready(s balance.Stats) (n int) {
	for _, ep := range s.Endpoints {
		if ep.State == balance.Ready || ep.State == balance.NotReady {
			n++
		}
	}
	return n
}

func TestReportedLoadEndToEnd(t *testing.T) {
	for _, c := range []struct {
		name   string
		metric load.Metric
		cfg    Config
	}{
		{"S17 a load that servers report in a header steers picks", load.Reported{Trust: time.Minute}, Config{}},
		{"S17 through layers around each endpoint, too", load.Reported{Trust: time.Minute}, Config{
			PerEndpoint: func(inner service) service {
				return limit.NewConcurrency(inner, limit.NewLimiter(10))
			},
		}},
		{"S17 and what they answer to probes", load.Probing{Reported: load.Reported{Trust: time.Minute}, PerCall: 100}, Config{ProbePath: DefaultProbePath}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var busy, free atomic.Int64
			of := func(n float64) ReportConfig { return ReportConfig{Load: func() float64 { return n }} }
			a, b := loaded(t, of(1e6), &busy, c.cfg.ProbePath != ""), loaded(t, of(1), &free, c.cfg.ProbePath != "")
			s := balanced(t, 200, c.metric, c.cfg, a, b)
			if free.Load() < 160 { // the first calls come before the first answer to a probe
				t.Errorf("the free server has got %d of 200, the busy one %d", free.Load(), busy.Load())
			}
			for _, ep := range s.Endpoints {
				if ep.Reports == 0 || ep.BadReports != 0 {
					t.Errorf("%s: %d reports, %d bad ones", ep.Addr, ep.Reports, ep.BadReports)
				}
			}
			if probes := s.Probes.Sent > 0; probes != (c.cfg.ProbePath != "") || s.Probes.Failed != 0 {
				t.Errorf("probes: %+v", s.Probes)
			}
		})
	}
}

func TestBadReportsAreIgnoredAndCounted(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("x-load", "-3") }))
	defer s.Close()
	st := balanced(t, 5, load.Reported{}, Config{}, s.URL)
	if ep := st.Endpoints[0]; ep.Reports != 0 || ep.BadReports != 5 {
		t.Errorf("%d reports, %d bad ones, want 0 and 5", ep.Reports, ep.BadReports)
	}
}

func TestProbesThatFail(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/probe" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer s.Close()
	st := balanced(t, 20, load.Probing{}, Config{ProbePath: "/probe"}, s.URL)
	if p := st.Probes; p.Sent == 0 || p.Failed != p.Sent {
		t.Errorf("probes: %+v, want all to fail", p)
	}
	if ep := st.Endpoints[0]; ep.Successes != 20 {
		t.Errorf("%d successes, want 20: probes are no calls", ep.Successes)
	}
}

func TestReportLoad(t *testing.T) {
	get := func(h http.Handler, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return w
	}
	t.Run("says what is in flight when the answer is written", func(t *testing.T) {
		var gauge load.Gauge
		h := ReportLoad(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			gauge.Begin()
			w.WriteHeader(http.StatusTeapot)
		}), ReportConfig{Gauge: &gauge})
		if w := get(h, "/"); w.Header().Get("x-load") != "2" || w.Code != http.StatusTeapot {
			t.Errorf("%d, load %q", w.Code, w.Header().Get("x-load"))
		}
	})
	t.Run("says so of a handler that says nothing", func(t *testing.T) {
		h := ReportLoad(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		if w := get(h, "/"); w.Header().Get("x-load") != "1" {
			t.Errorf("load %q", w.Header().Get("x-load"))
		}
	})
	t.Run("leaves alone what the handler says", func(t *testing.T) {
		h := ReportLoad(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("x-load", "99") }))
		if w := get(h, "/"); w.Header().Get("x-load") != "99" {
			t.Errorf("load %q", w.Header().Get("x-load"))
		}
	})
	t.Run("does not say what is not valid", func(t *testing.T) {
		h := ReportLoad(http.NotFoundHandler(), ReportConfig{Load: func() float64 { return -1 }})
		for _, path := range []string{"/", DefaultProbePath} {
			if got := get(h, path).Header()[LoadHeader]; got != nil {
				t.Errorf("%s: load %q", path, got)
			}
		}
	})
	t.Run("answers probes, with a latency once there is one", func(t *testing.T) {
		var gauge load.Gauge
		h := ReportLoad(http.NotFoundHandler(), ReportConfig{Gauge: &gauge})
		w := get(h, DefaultProbePath)
		if w.Code != http.StatusNoContent || w.Header().Get("x-load") != "0" || w.Header()[LoadLatencyHeader] != nil {
			t.Errorf("%d, %v", w.Code, w.Header())
		}
		gauge.End(gauge.Begin(), 2500*time.Microsecond)
		if w := get(h, DefaultProbePath); w.Header().Get(LoadLatencyHeader) != "2.5" {
			t.Errorf("%v", w.Header())
		}
	})
	t.Run("leaves probes to the handler if it is to", func(t *testing.T) {
		h := ReportLoad(http.NotFoundHandler(), ReportConfig{NoProbes: true})
		if w := get(h, DefaultProbePath); w.Code != http.StatusNotFound {
			t.Errorf("%d", w.Code)
		}
	})
	t.Run("learns no latency from failures and panics", func(t *testing.T) {
		var gauge load.Gauge
		h := ReportLoad(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/panic" {
				panic(http.ErrAbortHandler)
			}
			status, _ := strconv.Atoi(r.URL.Path[1:])
			w.WriteHeader(status)
		}), ReportConfig{Gauge: &gauge})
		get(h, "/500")
		func() {
			defer func() { _ = recover() }()
			get(h, "/panic")
		}()
		if r := gauge.Report(); r != (load.Report{}) {
			t.Errorf("the gauge reports %v", r)
		}
		get(h, "/404")
		if r := gauge.Report(); r.InFlight != 0 {
			t.Errorf("the gauge reports %v", r)
		}
	})
	t.Run("inside and outside a stack", func(t *testing.T) {
		inner, err := NewServerStack().LoadShed().ConcurrencyLimit(1).Timeout(time.Minute).Handler(ReportLoad(http.NotFoundHandler()))
		if err != nil {
			t.Fatal(err)
		}
		if w := get(ReportLoad(inner), "/"); w.Code != http.StatusNotFound || len(w.Header()[LoadHeader]) != 1 {
			t.Errorf("%d, %v", w.Code, w.Header())
		}
	})
}

func TestReportConfigValidate(t *testing.T) {
	for _, c := range []ReportConfig{{ProbePath: "load"}, {ProbePath: "/load", NoProbes: true}} {
		if c.Validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	if (Config{ProbePath: "load"}).Validate() == nil {
		t.Error("a probe path without a slash is accepted")
	}
}
