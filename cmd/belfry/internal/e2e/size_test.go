package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// many is how many connections, and how many requests in flight, a proxy is measured with.
const many = 1000

// TestWhatAProxyTakes measures what docs/e2e.md says about start and size. That each of many requests at once is answered, and
// that the proxy is what it was before when all are gone, it asserts.
func TestWhatAProxyTakes(t *testing.T) {
	info, err := os.Stat(belfryProgram)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the program: %.1f MB", float64(info.Size())/1e6)
	servers := []*server{startServer(t), startServer(t), startServer(t)}
	t.Logf("from the start to the first answer, median of seven: %v", startUp(t, servers))

	p := startProxy(t, "endpoint_limit: 500\n", servers...)
	before := p.usage()
	t.Logf("memory, idle: %s", p.memory())
	client := newCrowd()
	defer client.leave()
	client.ask(t, p, 8000)
	t.Logf("memory, %d requests in flight: %s", many, client.highest)
	eventually(t, func() (string, bool) { s := p.state(); return fmt.Sprintf("%+v", s), s.held() == 0 })
	t.Logf("memory, %d idle connections: %s", many, p.memory())
	client.leave()
	for _, s := range servers {
		s.terminate()
	}
	eventually(t, func() (string, bool) {
		now := p.usage()
		return fmt.Sprintf("%+v, before %+v", now, before), now.within(before)
	})
}

// startUp returns the median time from the start of a proxy to the first answer.
func startUp(t *testing.T, servers []*server) time.Duration {
	t.Helper()
	var took []time.Duration
	for range 7 {
		began := time.Now()
		p := startProxy(t, "", servers...)
		res, err := p.alone.Get(p.url)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		took = append(took, time.Since(began).Round(time.Millisecond))
		p.kill()
	}
	slices.Sort(took)
	t.Logf("starts: %v", took)
	return took[len(took)/2]
}

// memory is the proxy's resident set, as the kernel says.
func (p *proxy) memory() string {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return fmt.Sprintf("%d MiB", kib>>10)
		}
	}
	p.t.Fatalf("no VmRSS in %s", text)
	return ""
}

// A crowd is many clients, each with one connection, which it dials itself: an http.Transport dials more than it uses.
type crowd struct {
	clients []*http.Transport
	highest string // the memory of the proxy when all requests were in flight
}

func newCrowd() *crowd {
	c := &crowd{}
	for range many {
		c.clients = append(c.clients, &http.Transport{MaxConnsPerHost: 1, DialContext: dial})
	}
	return c
}

// dial is patient: a machine that is busy may drop a first SYN.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return (&net.Dialer{Timeout: time.Minute}).DialContext(ctx, network, addr)
}

// ask sends a request by each client, which servers hold for some milliseconds, and fails the test for those that are not answered well.
func (c *crowd) ask(t *testing.T, p *proxy, hold int) {
	t.Helper()
	var open sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	for i, transport := range c.clients {
		open.Go(func() {
			answer := one(transport, fmt.Sprintf("%s/?hold=%d", p.url, hold), fmt.Sprint("crowd", i))
			mu.Lock()
			defer mu.Unlock()
			answers[answer]++
		})
	}
	eventually(t, func() (string, bool) {
		s := p.state()
		return fmt.Sprintf("%d of %d in flight", s.Limit.InFlight, many), s.Limit.InFlight == many
	})
	c.highest = p.memory()
	open.Wait()
	if answers["200"] != many {
		t.Errorf("answers: %v; the proxy says\n%s", answers, p.said())
	}
}

// one sends a request, and says how it was answered.
func one(transport *http.Transport, url, id string) string {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("X-Id", id)
	res, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err.Error()
	}
	if res.StatusCode != http.StatusOK {
		return res.Status + " " + res.Header.Get("X-Belfry-Reason")
	}
	return "200"
}

// leave closes all connections.
func (c *crowd) leave() {
	for _, transport := range c.clients {
		transport.CloseIdleConnections()
	}
}
