package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// belfry is the program under test, built once.
var belfry string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "belfry")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		belfry = filepath.Join(dir, "belfry")
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", belfry, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// patience is how long a test waits for what should come soon.
const patience = 15 * time.Second

// command is belfry with args, ended with the test at the latest.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, belfry, args...)
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return exit.ExitCode()
}

type demoResult struct {
	Scenario string
	Policies []struct {
		Name      string
		Requests  int
		Errors    int
		P50       *float64 `json:"p50_ms"`
		P99       *float64 `json:"p99_ms"`
		P999      *float64 `json:"p999_ms"`
		Endpoints []struct {
			MaxLatency float64 `json:"max_latency_ms"`
			Share      float64
		}
	}
}

func TestDemoAsJSON(t *testing.T) {
	cmd := command(t, "demo", "--json", "--duration", "500ms", "--rate", "200")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if code := exitCode(t, cmd.Run()); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	var got demoResult
	decoder := json.NewDecoder(&stdout)
	decoder.DisallowUnknownFields()
	var raw json.RawMessage
	if err := decoder.Decode(&raw); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		t.Errorf("more than one object on standard output: %v", err)
	}
	if !strings.Contains(stderr.String(), "expected  done:") || strings.Contains(stderr.String(), "\x1b") {
		t.Errorf("progress on standard error is %q", stderr.String())
	}
	var names []string
	slow := map[string]float64{}
	for _, p := range got.Policies {
		names = append(names, p.Name)
		sum := 0.0
		for _, e := range p.Endpoints {
			sum += e.Share
			if e.MaxLatency >= 100 {
				slow[p.Name] += e.Share
			}
		}
		if sum < 0.999999 || sum > 1.000001 || len(p.Endpoints) != 10 {
			t.Errorf("%s: the shares of %d endpoints sum to %v", p.Name, len(p.Endpoints), sum)
		}
		// The same arrivals for each policy, of which a Poisson process of 100 has between 60 and 140.
		if p.Requests != got.Policies[0].Requests || p.Requests < 60 || p.Requests > 140 || p.Errors != 0 {
			t.Errorf("%s: %d requests, %d errors", p.Name, p.Requests, p.Errors)
		}
		if p.P50 == nil || p.P99 == nil || p.P999 != nil || *p.P50 > *p.P99 {
			t.Errorf("%s: p50 %v, p99 %v, p99.9 %v", p.Name, p.P50, p.P99, p.P999)
		}
	}
	if got.Scenario != "spread" {
		t.Errorf("the scenario is %q", got.Scenario)
	}
	if strings.Join(names, " ") != "random inflight peakewma expected" {
		t.Fatalf("policies are %q", names)
	}
	if slow["expected"] >= slow["random"] {
		t.Errorf("servers of 100 ms and more got %.3f under expected, %.3f under random", slow["expected"], slow["random"])
	}
}

func TestDemoIsInterrupted(t *testing.T) {
	cmd := command(t, "demo", "--json", "--duration", "1m", "--rate", "100")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "random      1s") {
		continue
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stderr)
	if code := exitCode(t, cmd.Wait()); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	var got demoResult
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Policies) != 1 || got.Policies[0].Name != "random" || got.Policies[0].Requests < 10 || got.Policies[0].Errors != 0 {
		t.Errorf("what was measured until then is %s", stdout.String())
	}
}

func TestExitCodes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args string
		want int
		says string
	}{
		{"version", 0, "belfry "},
		{"--help", 0, "demo"},
		{"check belfry.example.yaml", 0, "belfry.example.yaml is fine"},
		{"check main.go", 2, "main.go:"},
		{"demo --rate 0", 2, "--rate must be 1 to 10000"},
		{"demo --scenario nonsense", 2, "--scenario must be one of spread, slow"},
		{"proxy --to http://a/x", 2, "has a path"},
		{"proxy --to http://a --admin off --listen " + taken.Addr().String(), 1, "another program listens there"},
		{"proxy --to http://a --listen 127.0.0.1:0 --admin " + taken.Addr().String(), 1, "--admin " + taken.Addr().String() + ": another program listens there"},
	} {
		out, err := command(t, strings.Fields(c.args)...).CombinedOutput()
		if code := exitCode(t, err); code != c.want || !strings.Contains(string(out), c.says) {
			t.Errorf("belfry %s: exit code %d, want %d, and it says\n%s", c.args, code, c.want, out)
		}
	}
}

// A proxy is belfry proxy as a process.
type proxy struct {
	cmd   *exec.Cmd
	url   string
	admin string        // the URL of its page
	log   *bytes.Buffer // complete after wait
	eof   chan struct{}
}

func startProxy(t *testing.T, args ...string) *proxy {
	t.Helper()
	return launch(t, append([]string{"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)...)
}

// launch starts a proxy with args and nothing else.
func launch(t *testing.T, args ...string) *proxy {
	t.Helper()
	p := &proxy{cmd: command(t, append([]string{"proxy"}, args...)...), log: &bytes.Buffer{}, eof: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listens := make(chan []string, 1)
	go func() {
		defer close(p.eof)
		lines := bufio.NewScanner(stderr)
		address := regexp.MustCompile(`address=(\S+) admin=(\S+)`)
		for lines.Scan() {
			fmt.Fprintln(p.log, lines.Text())
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				listens <- m
			}
		}
	}()
	select {
	case addresses := <-listens:
		p.url, p.admin = "http://"+addresses[1], "http://"+addresses[2]
	case <-p.eof:
		t.Fatalf("the proxy ended: %s", p.log)
	case <-time.After(patience):
		t.Fatal("the proxy does not listen")
	}
	return p
}

// wait returns the exit code.
func (p *proxy) wait(t *testing.T) int {
	t.Helper()
	<-p.eof
	return exitCode(t, p.cmd.Wait())
}

// A backend is a server that answers GET and PUT, and holds /slow until it may go on.
type backend struct {
	*httptest.Server
	served atomic.Int64
	slow   chan struct{} // one for each /slow that has arrived
	rest   chan struct{} // closed by free, when they may go on
	free   func()
}

func startBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{slow: make(chan struct{}, 16), rest: make(chan struct{})}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/slow" {
			b.slow <- struct{}{}
			<-b.rest
		}
		b.served.Add(1)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
	}))
	b.free = sync.OnceFunc(func() { close(b.rest) })
	t.Cleanup(func() {
		b.free()
		b.Server.Close()
	})
	return b
}

// die ends the server as a crash would: it listens no more, and its connections break.
func (b *backend) die() {
	b.Listener.Close()
	b.CloseClientConnections()
}

func TestProxyInFrontOfThreeServersOneOfWhichDies(t *testing.T) {
	backends := []*backend{startBackend(t), startBackend(t), startBackend(t)}
	var targets []string
	for _, b := range backends {
		targets = append(targets, b.URL)
	}
	p := startProxy(t, "--to", strings.Join(targets, ","))

	ask := func(n int) error {
		method, body := http.MethodGet, ""
		if n%3 == 0 {
			method, body = http.MethodPut, fmt.Sprintf("body %d", n)
		}
		path := fmt.Sprintf("/%d", n)
		req, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if want := method + " " + path + " " + body; err != nil || res.StatusCode != http.StatusOK || string(text) != want {
			return fmt.Errorf("%s, %q, %w; want %q", res.Status, text, err, want)
		}
		return nil
	}
	// Eight clients; the second server dies when a third of the work is done.
	const clients, each = 8, 150
	var load sync.WaitGroup
	var done atomic.Int64
	for c := range clients {
		load.Go(func() {
			for i := range each {
				if done.Add(1) == clients*each/3 {
					backends[1].die()
				}
				if err := ask(c*each + i); err != nil {
					t.Errorf("a request that can be tried again failed: %v", err)
					return
				}
			}
		})
	}
	load.Wait()
	for i, b := range backends {
		if b.served.Load() == 0 {
			t.Errorf("server %d served nothing", i+1)
		}
	}

	if t.Failed() {
		_ = p.cmd.Process.Kill()
		p.wait(t)
		t.Fatalf("the proxy's log:\n%s", p.log)
	}

	// SIGTERM while requests are in flight: they are answered, then it ends.
	const held = 4
	answers := make(chan string, held)
	for range held {
		go func() {
			res, err := http.Get(p.url + "/slow")
			if err != nil {
				answers <- err.Error()
				return
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			answers <- fmt.Sprintf("%s %v", text, err)
		}()
	}
	for range held {
		select {
		case <-backends[0].slow:
		case <-backends[2].slow:
		case <-time.After(patience):
			t.Fatal("the held requests do not arrive")
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !refuses(p.url, patience) {
		t.Error("it still listens after SIGTERM")
	}
	backends[0].free()
	backends[2].free()
	for range held {
		if got := <-answers; got != "GET /slow  <nil>" {
			t.Errorf("a request in flight at SIGTERM is answered %q", got)
		}
	}
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"stack=", "load shed → buffer(512", "failed=0", "cut_off=0"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("%s is missing in the log:\n%s", want, p.log)
		}
	}
}

// refuses reports whether connections to url are refused within a time.
func refuses(url string, within time.Duration) bool {
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			return true
		}
		conn.Close()
	}
	return false
}
