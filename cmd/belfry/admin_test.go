package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// get returns status and body of what is at a URL, 0 if there is nothing.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestTheAdminAddressTellsWhatTheProxyDoes(t *testing.T) {
	backends := []*backend{startBackend(t), startBackend(t)}
	p := startProxy(t, "--to", backends[0].URL+","+backends[1].URL)
	const requests = 40
	for range requests {
		if code, text := get(t, p.url+"/x"); code != http.StatusOK {
			t.Fatalf("%d: %s", code, text)
		}
	}
	type state struct {
		Status   string
		Draining bool
		Address  string
		Requests struct {
			Total    int
			InFlight int `json:"in_flight"`
			Outcomes map[string]int
		}
		Endpoints []struct {
			Key, Condition string
			Successes      int
			InFlight       int `json:"in_flight"`
		}
	}
	see := func() (s state) {
		t.Helper()
		code, text := get(t, p.admin+"/api/state")
		if err := json.Unmarshal([]byte(text), &s); code != http.StatusOK || err != nil {
			t.Fatalf("/api/state: %d, %v: %s", code, err, text)
		}
		return s
	}
	s := see()
	if s.Status != "serving" || "http://"+s.Address != p.url || s.Requests.Total != requests || len(s.Endpoints) != 2 {
		t.Fatalf("after %d requests: %+v", requests, s)
	}
	if sum := s.Endpoints[0].Successes + s.Endpoints[1].Successes; sum != requests || s.Endpoints[0].Condition != "ready" {
		t.Errorf("endpoints had %d of %d requests: %+v", sum, requests, s.Endpoints)
	}
	for path, want := range map[string]string{
		"/": "<title>belfry</title>", "/healthz": "ok", "/readyz": "ready", "/metrics": `belfry_requests_total{route="default"} 40`,
	} {
		if code, text := get(t, p.admin+path); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s answers %d, without %s", path, code, want)
		}
	}

	// While it drains it is alive and not ready, and says what it waits for.
	done := make(chan int, 1)
	go func() {
		code, _ := get(t, p.url+"/slow")
		done <- code
	}()
	select {
	case <-backends[0].slow:
	case <-backends[1].slow:
	case <-time.After(patience):
		t.Fatal("the slow request does not arrive")
	}
	if code, _ := get(t, p.admin+"/readyz"); code != http.StatusOK {
		t.Errorf("ready is %d before the signal", code)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		if code, _ := get(t, p.admin+"/readyz"); code == http.StatusServiceUnavailable {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it stays ready after SIGTERM")
		}
	}
	if code, _ := get(t, p.admin+"/healthz"); code != http.StatusOK {
		t.Errorf("health is %d while it drains", code)
	}
	if s := see(); s.Status != "draining" || !s.Draining || s.Requests.InFlight != 1 {
		t.Errorf("while it drains: %+v", s)
	}
	backends[0].free()
	backends[1].free()
	if code := <-done; code != http.StatusOK {
		t.Errorf("the request in flight is answered %d", code)
	}
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if code, _ := get(t, p.admin+"/healthz"); code != 0 {
		t.Error("something is alive after the end")
	}
}
