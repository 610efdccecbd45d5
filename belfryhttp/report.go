package belfryhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/load"
)

// Headers by which a server says how busy it is.
const (
	// LoadHeader is how many requests the server has in flight, or another measure like it: a decimal number, at least 0.
	LoadHeader = "X-Load"
	// LoadLatencyHeader is how many milliseconds an answer takes when it has about so many: a decimal number, at least 0.
	LoadLatencyHeader = "X-Load-Latency"
	// ORCAHeader is a report of Open Request Cost Aggregation (ORCA), as Envoy and gRPC know it: the word TEXT and a list of
	// name=value, or the word JSON and an object.
	ORCAHeader = "Endpoint-Load-Metrics"
)

// DefaultProbePath is where [ReportLoad] answers probes.
const DefaultProbePath = "/.well-known/belfry-load"

// ParseLoad returns what the header of a response says of its server's load, and false if it says nothing. A header that
// says something which nobody should believe gives a report that is not valid: what is no plain decimal number or is
// negative, a name given twice, a header given twice, or one of more than 4 KiB.
//
// LoadHeader counts before ORCAHeader. Of ORCA's names, named_metrics.in_flight is taken as a number of requests, and else
// application_utilization or, without that, cpu_utilization, in the order of gRPC's A58; one that is 0 counts as not given. A utilization u
// is as much as the requests that a single queue has at u in the mean, u/(1-u), and for that at most 0.99. The form BIN says nothing.
func ParseLoad(h http.Header) (r load.Report, said bool) {
	if values := h[LoadHeader]; len(values) > 0 {
		return parseReport(values, h[LoadLatencyHeader]), true
	}
	values := h[ORCAHeader]
	switch {
	case len(values) == 0:
		return load.Report{}, false
	case len(values) > 1 || len(values[0]) > maxORCA:
		return noReport, true
	}
	m, err := parseORCA(values[0])
	switch {
	case errors.Is(err, errBinary):
		return load.Report{}, false
	case err != nil:
		return noReport, true
	}
	return m.report()
}

// noReport is not valid.
var noReport = load.Report{InFlight: -1}

const (
	maxORCA        = 4 << 10
	maxUtilization = 0.99
	maxNumber      = 32 // bytes of one
)

func parseReport(inFlight, latency []string) load.Report {
	n, ok := oneNumber(inFlight)
	if !ok {
		return noReport
	}
	r := load.Report{InFlight: n}
	if len(latency) == 0 {
		return r
	}
	took, ok := oneNumber(latency)
	if !ok || took > float64(maxRetryAfter/time.Millisecond) {
		return noReport
	}
	r.Latency = time.Duration(took * float64(time.Millisecond))
	return r
}

func oneNumber(values []string) (float64, bool) {
	if len(values) != 1 {
		return 0, false
	}
	return parseNumber(strings.Trim(values[0], " \t"))
}

// parseNumber reads a decimal number of at least 0. What else strconv reads, such as hexadecimal numbers and infinity, is none.
func parseNumber(s string) (float64, bool) {
	if s == "" || len(s) > maxNumber || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && !strings.ContainsRune(".eE+-", rune(c)) {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && v <= math.MaxFloat64
}

// A metrics is what is read of an ORCA report.
type metrics struct {
	inFlight, application, cpu float64
	counted                    bool
}

var (
	errBinary  = errors.New("belfryhttp: a binary report")
	errMetrics = errors.New("belfryhttp: not a report")
)

func parseORCA(value string) (metrics, error) {
	form, rest, _ := strings.Cut(strings.Trim(value, " \t"), " ")
	switch form {
	case "TEXT":
		return parseText(rest)
	case "JSON":
		return parseJSON(rest)
	case "BIN":
		return metrics{}, errBinary
	}
	return metrics{}, errMetrics
}

func parseText(list string) (m metrics, err error) {
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(list, ",") {
		name, number, ok := strings.Cut(strings.Trim(pair, " \t"), "=")
		v, valid := parseNumber(number)
		if !ok || !valid || name == "" || seen[name] {
			return metrics{}, errMetrics
		}
		seen[name] = true
		switch name {
		case "application_utilization":
			m.application = v
		case "cpu_utilization":
			m.cpu = v
		case "named_metrics.in_flight":
			m.inFlight, m.counted = v, true
		}
	}
	return m, nil
}

func parseJSON(object string) (m metrics, err error) {
	var fields struct {
		Application *float64           `json:"application_utilization"`
		CPU         *float64           `json:"cpu_utilization"`
		Named       map[string]float64 `json:"named_metrics"`
	}
	d := json.NewDecoder(bytes.NewReader([]byte(object)))
	if err := d.Decode(&fields); err != nil {
		return metrics{}, errMetrics
	}
	if _, err := d.Token(); err != io.EOF {
		return metrics{}, errMetrics
	}
	for _, v := range []struct{ from, to *float64 }{{fields.Application, &m.application}, {fields.CPU, &m.cpu}} {
		if v.from != nil {
			*v.to = *v.from
		}
	}
	m.inFlight, m.counted = fields.Named["in_flight"], hasKey(fields.Named, "in_flight")
	if m.inFlight < 0 || m.application < 0 || m.cpu < 0 {
		return metrics{}, errMetrics
	}
	return m, nil
}

func hasKey(m map[string]float64, key string) bool {
	_, ok := m[key]
	return ok
}

func (m metrics) report() (load.Report, bool) {
	u := m.application
	if u == 0 {
		u = m.cpu
	}
	switch {
	case m.counted:
		return load.Report{InFlight: m.inFlight}, true
	case u == 0:
		return load.Report{}, false
	}
	u = min(u, maxUtilization)
	return load.Report{InFlight: u / (1 - u)}, true
}

var (
	_ balance.Reporter = (*Leaf)(nil)
	_ balance.Reporter = (*closing)(nil)
	_ balance.Prober   = (*probed)(nil)
)

// OnReport makes the leaf tell what [ParseLoad] reads in responses, before Call returns. It is called before the first Call.
func (l *Leaf) OnReport(told func(load.Report)) { l.told = told }

// tell tells what res says.
func (l *Leaf) tell(res *http.Response) {
	if l.told == nil {
		return
	}
	if r, said := ParseLoad(res.Header); said {
		l.told(r)
	}
}

// OnReport makes the endpoint's leaf tell.
func (c *closing) OnReport(told func(load.Report)) { c.leaf.OnReport(told) }

// A probed is an endpoint that can be asked how busy its server is.
type probed struct {
	*closing
	url string
}

// newProbed returns c with its path, below the base, from which it is asked.
func newProbed(c *closing, base *url.URL, path string) *probed {
	return &probed{c, join(base, &url.URL{Path: path}).String()}
}

// Probe asks by a GET request that no layer sees: one that has no room for calls may still say how busy its server is.
func (p *probed) Probe(ctx context.Context) (load.Report, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, http.NoBody)
	if err != nil {
		return load.Report{}, err
	}
	res, err := p.leaf.rt.RoundTrip(req)
	if err != nil {
		return load.Report{}, err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, defaultDrainBytes) // for the connection's sake
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return load.Report{}, fmt.Errorf("belfryhttp: a probe was answered %d", res.StatusCode)
	}
	r, said := ParseLoad(res.Header)
	if !said {
		return load.Report{}, errSilent
	}
	return r, nil
}

var errSilent = errors.New("belfryhttp: the answer to a probe says nothing of load")
