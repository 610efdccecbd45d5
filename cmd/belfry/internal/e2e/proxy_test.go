package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A proxy is belfry proxy as a process, with a file.
type proxy struct {
	t          *testing.T
	cmd        *exec.Cmd
	file       string
	url, admin string
	eof        chan struct{}
	alone      *http.Client // leaves no connection behind

	mu  sync.Mutex
	log strings.Builder
}

func startProxy(t *testing.T, config string, servers ...*server) *proxy {
	t.Helper()
	p := &proxy{
		t: t, file: filepath.Join(t.TempDir(), "belfry.yaml"), eof: make(chan struct{}),
		alone: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience},
	}
	p.write(config, servers...)
	p.cmd = exec.Command(belfryProgram, "proxy", "--config", p.file)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	listens := make(chan []string, 1)
	go p.read(stderr, listens)
	select {
	case at := <-listens:
		p.url, p.admin = "http://"+at[1], "http://"+at[2]
	case <-p.eof:
		t.Fatalf("the proxy ended: %s", p.said())
	case <-time.After(patience):
		t.Fatal("the proxy does not listen")
	}
	return p
}

// write makes the proxy's file.
func (p *proxy) write(config string, servers ...*server) {
	p.t.Helper()
	// A client may make a connection and use it much later: it took another one that became free.
	text := "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nclient:\n  header_timeout: 1m\n" + config + "targets:\n"
	for _, s := range servers {
		text += "  - " + s.url() + "\n"
	}
	if err := os.WriteFile(p.file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

var listening = regexp.MustCompile(`address=(\S+) admin=(\S+)`)

func (p *proxy) read(stderr io.Reader, listens chan<- []string) {
	defer close(p.eof)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		p.mu.Lock()
		fmt.Fprintln(&p.log, lines.Text())
		p.mu.Unlock()
		if at := listening.FindStringSubmatch(lines.Text()); at != nil {
			listens <- at
		}
	}
}

// said is what it has logged.
func (p *proxy) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *proxy) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns the exit code.
func (p *proxy) wait() int {
	p.t.Helper()
	select {
	case <-p.eof:
	case <-time.After(patience):
		p.t.Error("the proxy does not end")
		_ = p.cmd.Process.Kill()
		<-p.eof
	}
	_ = p.cmd.Wait() // the code says it
	return p.cmd.ProcessState.ExitCode()
}

func (p *proxy) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		<-p.eof
		_ = p.cmd.Wait()
	}
}

// get returns what is at a path of the admin address, with the status.
func (p *proxy) get(path string) (int, string) {
	p.t.Helper()
	res, err := p.alone.Get(p.admin + path)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(text)
}

// A state is what the tests read of /api/state.
type state struct {
	Requests struct {
		InFlight int `json:"in_flight"`
	}
	Buffer struct{ Seated, Queued int }
	Limit  struct {
		InFlight int `json:"in_flight"`
		Reserved int
		Waiting  int
	}
	Discovery struct{ Waiting int }
	Config    struct{ Generation int }
	Endpoints []struct {
		Key      string
		InFlight int `json:"in_flight"`
		Reserved int
	}
}

func (p *proxy) state() (s state) {
	p.t.Helper()
	code, text := p.get("/api/state")
	if err := json.Unmarshal([]byte(text), &s); code != http.StatusOK || err != nil {
		p.t.Fatalf("/api/state: %d, %v: %s", code, err, text)
	}
	return s
}

// held counts what is in use of all that has room for so many.
func (s state) held() int {
	n := s.Requests.InFlight + s.Buffer.Seated + s.Buffer.Queued + s.Limit.InFlight + s.Limit.Reserved + s.Limit.Waiting + s.Discovery.Waiting
	for _, e := range s.Endpoints {
		n += e.InFlight + e.Reserved
	}
	return n
}

// A usage is what a process has of what must not leak.
type usage struct{ goroutines, fds, kernelFDs int }

// usage looks at the process, and at what it says of itself.
func (p *proxy) usage() (u usage) {
	p.t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	u.kernelFDs = len(entries)
	_, text := p.get("/metrics")
	for line := range strings.Lines(text) {
		_, _ = fmt.Sscanf(line, "go_goroutines %d", &u.goroutines)
		_, _ = fmt.Sscanf(line, "process_open_fds %d", &u.fds)
	}
	if u.goroutines == 0 || u.fds == 0 {
		p.t.Fatalf("goroutines and files are missing in\n%s", text)
	}
	return u
}

// within reports whether u is not more than o.
func (u usage) within(o usage) bool {
	return u.goroutines <= o.goroutines && u.fds <= o.fds && u.kernelFDs <= o.kernelFDs
}
