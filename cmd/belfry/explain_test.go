package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A slow server, one that always fails and a quick one: the proxy says which is which, and what it chose replays under other policies.
func TestExplainARunningProxy(t *testing.T) {
	answer := func(after time.Duration, status int) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			<-time.After(after)
			w.WriteHeader(status)
		}))
		t.Cleanup(s.Close)
		return s
	}
	quick, slow, bad := answer(0, 200), answer(50*time.Millisecond, 200), answer(0, 500)
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndecisions: 500\nretry: {attempts: 1}\ntargets: ['%s', '%s', '%s']\n", quick.URL, slow.URL, bad.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "--config", file)
	for range 150 {
		res, err := http.Get(p.url)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	addr := strings.TrimPrefix(p.admin, "http://")
	for url, want := range map[string]string{slow.URL: "- It is slow: ", bad.URL: "- It is failing: ", quick.URL: "- Nothing keeps it from its share."} {
		out, err := command(t, "explain", url, "--admin", addr).CombinedOutput()
		if exitCode(t, err) != 0 || !strings.HasPrefix(string(out), url+" is ") || !strings.Contains(string(out), want) || !strings.Contains(string(out), "Of the latest 150 decisions, over ") {
			t.Errorf("of %s it says\n%s, want %q", url, out, want)
		}
	}
	res, err := http.Get(p.admin + "/api/decisions")
	if err != nil {
		t.Fatal(err)
	}
	saved, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	ring := filepath.Join(t.TempDir(), "saved.json")
	if err := os.WriteFile(ring, saved, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := command(t, "lab", "replay", ring, "--policy", "random,default").CombinedOutput()
	if exitCode(t, err) != 0 || !strings.Contains(string(out), "150 decisions") || !strings.Contains(string(out), "recorded") || !strings.Contains(string(out), slow.URL) {
		t.Errorf("the replay says\n%s", out)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d: %s", code, p.log)
	}
}
