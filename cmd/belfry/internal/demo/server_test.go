package demo

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/belfry-go/belfry/load"
)

func TestLatenciesAreUniformAndDependOnRequestAndServerAlone(t *testing.T) {
	p := planned(t, "spread")
	a := newServer(p, 8)
	latency := func(s *server, n uint64) time.Duration {
		d, class := s.answer(n, 1500*time.Nanosecond)
		if class != load.Success {
			t.Fatalf("request %d ends as %v", n, class)
		}
		return d
	}
	var sum time.Duration
	below := 0
	const n = 20_000
	for i := range uint64(n) {
		d := latency(a, i)
		if d < 0 || d > a.Most {
			t.Fatalf("request %d takes %v, the most is %v", i, d, a.Most)
		}
		if d != latency(a, i) {
			t.Fatalf("request %d takes another time the second time", i)
		}
		if d < a.Most/10 {
			below++
		}
		sum += d
	}
	if mean := sum / n; mean < 245*time.Millisecond || mean > 255*time.Millisecond {
		t.Errorf("the mean is %v, want 250 ms", mean)
	}
	if share := float64(below) / n; share < 0.09 || share > 0.11 {
		t.Errorf("%.3f of the latencies are in the lowest tenth", share)
	}
	p.Servers[7] = p.Servers[8]
	twin := newServer(p, 7)
	p.seed = 2
	other := newServer(p, 8)
	if latency(a, 5) == latency(twin, 5) || latency(a, 5) == latency(other, 5) {
		t.Error("another server, or another seed, gives the same latency")
	}
}

func TestTheOddServerHasItsTrouble(t *testing.T) {
	for _, c := range []struct {
		scenario        string
		before, in      time.Duration // of a request
		class           load.Class
		joins, losesOne bool
	}{
		// In a run of 6 s, at 1 s and at 2 s; a request that takes 163 to 200 ms is taken to take 163.
		{scenario: "slow", before: 163 * time.Millisecond, in: 1628 * time.Millisecond},
		{scenario: "hang", before: 163 * time.Millisecond, in: 2500*time.Millisecond + 163*time.Millisecond},
		{scenario: "fast-fail", before: time.Millisecond, in: time.Millisecond, class: load.Failure},
		{scenario: "cold-start", before: 163 * time.Millisecond, in: 814 * time.Millisecond, joins: true},
		{scenario: "one-stuck", before: 20 * time.Millisecond, in: 20 * time.Millisecond, losesOne: true},
	} {
		p := planned(t, c.scenario)
		odd, even := newServer(p, p.Odd), newServer(p, 0)
		// As long as the shortest, or a quarter more.
		check := func(s *server, at, want time.Duration, class load.Class) {
			t.Helper()
			if d, got := s.answer(1, at); d < want-want/20 || d > want+want/4 || got != class {
				t.Errorf("%s: at %v it takes %v and ends as %v, want %v or a little more and %v", c.scenario, at, d, got, want, class)
			}
		}
		check(odd, time.Second, c.before, c.class)
		check(odd, 2*time.Second, c.in, c.class)
		check(even, 2*time.Second, p.Servers[0].Most*4/5, load.Success)
		if (odd.joins() == 1500*time.Millisecond) != c.joins || even.joins() != 0 {
			t.Errorf("%s: the odd one joins at %v, another at %v", c.scenario, odd.joins(), even.joins())
		}
		v := &visit{trial: newTrial()}
		early, first, second := odd.loses(v, 0), odd.loses(v, time.Second), odd.loses(v, 2*time.Second)
		if early || first != c.losesOne || second || even.loses(v, time.Second) {
			t.Errorf("%s: loses a request early %v, then %v, then %v", c.scenario, early, first, second)
		}
	}
}

func TestServersAnswerUnderTheirNumber(t *testing.T) {
	servers, err := startServers(planned(t, "spread"))
	if err != nil {
		t.Fatal(err)
	}
	defer stopServers(servers)
	newTrial().begin(servers)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	got, err := ask(t.Context(), rewriting{client.Transport, servers[2].url}, 12, len(servers))
	if err != nil || got != 2 {
		t.Errorf("server 2 answered as %d, %v", got, err)
	}
	res, err := client.Get(servers[0].url + "/not-a-number")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("a path without a number is answered %s, %v", res.Status, err)
	}
}

// A rewriting transport sends every request to one server.
type rewriting struct {
	inner http.RoundTripper
	url   string
}

func (r rewriting) RoundTrip(req *http.Request) (*http.Response, error) {
	req.URL.Host = r.url[len("http://"):]
	return r.inner.RoundTrip(req)
}
