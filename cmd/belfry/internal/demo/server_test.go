package demo

import (
	"io"
	"net/http"
	"testing"
	"time"
)

func TestLatenciesAreUniformAndDependOnRequestAndServerAlone(t *testing.T) {
	a := &server{number: 8, most: 500 * time.Millisecond, seed: 1}
	var sum time.Duration
	below := 0
	const n = 20_000
	for i := range uint64(n) {
		d := a.latency(i)
		if d < 0 || d >= a.most {
			t.Fatalf("request %d takes %v, the most is %v", i, d, a.most)
		}
		if d != a.latency(i) {
			t.Fatalf("request %d takes another time the second time", i)
		}
		if d < a.most/10 {
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
	twin := &server{number: 7, most: a.most, seed: 1}
	other := &server{number: 8, most: a.most, seed: 2}
	if a.latency(5) == twin.latency(5) || a.latency(5) == other.latency(5) {
		t.Error("another server, or another seed, gives the same latency")
	}
}

func TestServersAnswerUnderTheirNumber(t *testing.T) {
	servers, err := startServers(1)
	if err != nil {
		t.Fatal(err)
	}
	defer stopServers(servers)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for i, s := range servers {
		if s.most != spread[i] {
			t.Errorf("server %d takes up to %v, want %v", i, s.most, spread[i])
		}
	}
	got, err := ask(t.Context(), rewriting{client.Transport, servers[2].url}, 12)
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
