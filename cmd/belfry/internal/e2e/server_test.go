package e2e

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A server is the program backend, run again and again at one address.
type server struct {
	t     *testing.T
	addr  string
	log   string // the ids of the requests that it was given
	cmd   *exec.Cmd
	tells io.WriteCloser
	said  *bufio.Scanner
}

func startServer(t *testing.T) *server {
	t.Helper()
	addr := freeAddress(t)
	s := &server{t: t, addr: addr, log: filepath.Join(t.TempDir(), "ids")}
	s.start()
	t.Cleanup(s.kill)
	return s
}

var portsTaken atomic.Int32

// freeAddress returns an address that nobody takes while the server is down: the system gives ports of this range to nobody who does
// not ask for them, so that neither another program nor a connection to the very same port gets it.
func freeAddress(t *testing.T) string {
	t.Helper()
	const first, ports = 20000, 10000
	seed := rand.IntN(ports)
	for range ports {
		addr := fmt.Sprintf("127.0.0.1:%d", first+(seed+int(portsTaken.Add(1)))%ports)
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (s *server) url() string { return "http://" + s.addr }

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(backendProgram, s.addr, s.log)
	s.cmd.Stderr = os.Stderr
	var err error
	if s.tells, err = s.cmd.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.said = bufio.NewScanner(stdout)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.hear("ready")
}

func (s *server) hear(want string) {
	s.t.Helper()
	if !s.said.Scan() || s.said.Text() != want {
		s.t.Fatalf("server %s says %q, want %q: %v", s.addr, s.said.Text(), want, s.said.Err())
	}
}

// be makes it behave as mood says, from when be returns.
func (s *server) be(mood string) {
	s.t.Helper()
	if _, err := io.WriteString(s.tells, mood+"\n"); err != nil {
		s.t.Fatal(err)
	}
	s.hear(mood)
}

// kill ends it as a crash would. It does nothing if it has ended.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// terminate ends it as an operator would.
func (s *server) terminate() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	stuck := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer stuck.Stop()
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("server %s ends: %v", s.addr, err)
	}
	s.cmd = nil
}

// received returns how often it was given each request.
func (s *server) received() map[string]int {
	s.t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	ids := map[string]int{}
	for id := range strings.Lines(string(text)) {
		ids[strings.TrimSpace(id)]++
	}
	return ids
}
