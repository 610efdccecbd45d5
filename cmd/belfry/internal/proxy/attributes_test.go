package proxy

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

// countingServers starts n servers that count their requests.
func countingServers(t *testing.T, n int) (urls []string, counts []*atomic.Int64) {
	t.Helper()
	for range n {
		count := new(atomic.Int64)
		urls = append(urls, server(t, func(w http.ResponseWriter, _ *http.Request) { count.Add(1) }))
		counts = append(counts, count)
	}
	return urls, counts
}

// warm waits until each server has room.
func (r *running) warm(t *testing.T, n int) {
	t.Helper()
	eventually(t, "all servers are ready", func() bool {
		ready := 0
		for _, ep := range r.server.up.servers.Stats().Endpoints {
			if ep.State.String() == "ready" {
				ready++
			}
		}
		return ready == n
	})
}

func (r *running) get(t *testing.T, header, value string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(header, value)
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
}

func TestTargetAttributes(t *testing.T) {
	urls, counts := countingServers(t, 3)
	r := start(t, nil, urls[0]+" weight=9", urls[1], urls[2]+"  priority=1")
	r.warm(t, 3)
	for range 1000 {
		r.get(t, "A", "b")
	}
	// Nine tenths of 1000, give or take five deviations.
	if n := counts[0].Load(); n < 852 || n > 948 || counts[2].Load() != 0 {
		t.Errorf("requests went %d, %d and %d, want about 900, 100 and none", n, counts[1].Load(), counts[2].Load())
	}
}

func TestSticky(t *testing.T) {
	urls, counts := countingServers(t, 3)
	r := start(t, func(cfg *Config) { cfg.Sticky.Header = "X-User" }, urls...)
	r.warm(t, 3)
	seen := map[int]bool{}
	for user := range 20 {
		before := []int64{counts[0].Load(), counts[1].Load(), counts[2].Load()}
		for range 5 {
			r.get(t, "X-User", fmt.Sprint(user))
		}
		for i, count := range counts {
			switch count.Load() - before[i] {
			case 0:
			case 5:
				seen[i] = true
			default:
				t.Errorf("user %d is at several servers", user)
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("all users are at %v", seen)
	}
}
