package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/e2e/record"
)

// A load is the program load.
type load struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{}

	mu      sync.Mutex
	records []record.Record
}

func startLoad(t *testing.T, url string, perSecond int, prefix string, hold int) *load {
	t.Helper()
	l := &load{t: t, cmd: exec.Command(loadProgram, url, fmt.Sprint(perSecond), prefix, fmt.Sprint(hold)), done: make(chan struct{})}
	l.cmd.Stderr = os.Stderr
	var err error
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.kill)
	go l.read(json.NewDecoder(stdout))
	return l
}

func (l *load) read(lines *json.Decoder) {
	defer close(l.done)
	for {
		var r record.Record
		if lines.Decode(&r) != nil {
			return
		}
		l.mu.Lock()
		l.records = append(l.records, r)
		l.mu.Unlock()
	}
}

// stop sends no more.
func (l *load) stop() { l.stdin.Close() }

// end sends no more, and waits for what was sent. Ending again does nothing.
func (l *load) end() {
	l.t.Helper()
	l.stop()
	<-l.done
	if l.cmd.ProcessState == nil {
		if err := l.cmd.Wait(); err != nil {
			l.t.Errorf("the load ends: %v", err)
		}
	}
}

func (l *load) kill() {
	if l.cmd.ProcessState == nil {
		_ = l.cmd.Process.Kill()
		<-l.done
		_ = l.cmd.Wait()
	}
}

// all returns the requests that are over, in the order of their ends.
func (l *load) all() []record.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records)
}

// shares returns the part that each of servers had of the requests that were answered well from a time on, the smallest first, and
// how many there were.
func (l *load) shares(from time.Time, servers []*server) ([]float64, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts, n := map[string]int{}, 0
	for _, r := range slices.Backward(l.records) {
		if r.Over.Before(from) {
			break
		}
		if r.Error == "" {
			counts[r.Backend]++
			n++
		}
	}
	var all []float64
	for _, s := range servers {
		all = append(all, float64(counts[s.addr])/float64(max(n, 1)))
	}
	slices.Sort(all)
	return all, n
}

// fairWithin is how long it may take until each of n servers has at least 0.5/n of the requests.
const fairWithin = 15 * time.Second

// fair waits until each of servers has at least half an equal share of a second's requests, and returns how long after a time that
// second ended.
func (l *load) fair(s *stage, since time.Time, servers []*server) time.Duration {
	s.Helper()
	const second = time.Second
	for now := range ticks(20 * time.Millisecond) {
		from := now.Add(-second)
		if from.Before(since) {
			continue
		}
		all, n := l.shares(from, servers)
		if n > 0 && all[0] >= 0.5/float64(len(servers)) {
			return now.Sub(since)
		}
		if now.Sub(since) > fairWithin {
			_, text := s.proxy.get("/api/state")
			s.Errorf("%v after the recovery the shares are %.3f of %d: %s", now.Sub(since), all, n, text)
			return now.Sub(since)
		}
	}
	panic("unreachable")
}

// ticks is the time, again and again.
func ticks(every time.Duration) func(yield func(time.Time) bool) {
	return func(yield func(time.Time) bool) {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for now := range ticker.C {
			if !yield(now) {
				return
			}
		}
	}
}
