package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A verdict is what became of a mutant.
type verdict int

const (
	noticed verdict = iota
	survived
	equivalent
	unbuilt
	verdicts
)

func (v verdict) String() string {
	return [...]string{"noticed", "SURVIVED", "equivalent", "did not build"}[v]
}

type result struct {
	verdict verdict
	how     string
}

// suites runs tests.
type suites struct {
	cfg    config
	module string
	scrap  string              // a directory for overlays
	users  map[string][]string // the packages that import one, in their tests or otherwise
}

// newSuites also makes sure that the tests pass while nothing is broken, else a failure would mean nothing.
func newSuites(ctx context.Context, cfg config) (*suites, error) {
	s := &suites{cfg: cfg, users: map[string][]string{}}
	out, err := s.output(ctx, "list", "-m", "-f={{if .Main}}{{.Path}} {{.Dir}}{{end}}")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		if path, dir, _ := strings.Cut(strings.TrimSpace(line), " "); dir == cfg.root {
			s.module = path
		}
	}
	if s.module == "" {
		return nil, fmt.Errorf("no module in %s", cfg.root)
	}
	if err := s.findUsers(ctx); err != nil {
		return nil, err
	}
	if s.scrap, err = os.MkdirTemp("", "mutate"); err != nil {
		return nil, err
	}
	args := []string{"-short"}
	for _, dir := range cfg.packages {
		args = append(args, s.path(dir))
	}
	if out, err := s.test(ctx, args...); err != nil {
		s.close()
		return nil, fmt.Errorf("nothing is broken yet, and the tests fail: %w\n%s", err, out)
	}
	return s, nil
}

func (s *suites) close() { _ = os.RemoveAll(s.scrap) }

func (s *suites) path(dir string) string {
	if dir == "." {
		return s.module
	}
	return s.module + "/" + filepath.ToSlash(dir)
}

// findUsers leaves the programs and comparisons out: their tests are of another kind, and slow.
func (s *suites) findUsers(ctx context.Context) error {
	out, err := s.output(ctx, "list", "-f={{.ImportPath}} {{join .Imports \" \"}} {{join .TestImports \" \"}} {{join .XTestImports \" \"}}", "work")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		names := strings.Fields(line)
		if strings.HasPrefix(names[0], s.module+"/cmd/") || strings.HasPrefix(names[0], s.module+"/bench") {
			continue
		}
		slices.Sort(names[1:])
		for _, imported := range slices.Compact(names[1:]) {
			if imported != names[0] {
				s.users[imported] = append(s.users[imported], names[0])
			}
		}
	}
	return nil
}

// tryAll tries some at a time. The results come in order.
func (s *suites) tryAll(ctx context.Context, wave []mutant) iter.Seq2[mutant, result] {
	results := make([]chan result, len(wave))
	for i := range wave {
		results[i] = make(chan result, 1)
	}
	next := make(chan int, len(wave))
	for i := range wave {
		next <- i
	}
	close(next)
	for range s.cfg.workers {
		go func() {
			for i := range next {
				results[i] <- s.try(ctx, wave[i], i)
			}
		}()
	}
	return func(yield func(mutant, result) bool) {
		for i, m := range wave {
			if !yield(m, <-results[i]) {
				return
			}
		}
	}
}

// try runs the tests of the mutant's package, at first the short form, and then those of its users.
func (s *suites) try(ctx context.Context, m mutant, number int) result {
	overlay, err := s.overlay(m, number)
	if err != nil {
		return result{unbuilt, err.Error()}
	}
	own := s.path(m.src.dir)
	users, states := s.users[own], s.module+"/statetest"
	stages := [][]string{{"-short", own}, {own}}
	if slices.Contains(users, states) {
		stages = append(stages, []string{states, "-rapid.nofailfile"})
	}
	if len(users) > 0 {
		stages = append(stages, append([]string{"-short"}, users...))
	}
	for _, args := range stages {
		began := time.Now()
		if out, err := s.test(ctx, append([]string{"-overlay=" + overlay}, args...)...); err != nil {
			return judge(out, time.Since(began))
		}
	}
	return result{survived, fmt.Sprintf("the tests of %d packages", 1+len(users))}
}

func (s *suites) overlay(m mutant, number int) (string, error) {
	base := filepath.Join(s.scrap, strconv.Itoa(number))
	text, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(s.cfg.root, m.src.name): base + ".go"}})
	if err != nil {
		return "", err
	}
	return base + ".json", errors.Join(os.WriteFile(base+".go", m.text(), 0o600), os.WriteFile(base+".json", text, 0o600))
}

// judge reads what go test said when it failed.
func judge(out string, took time.Duration) result {
	seconds := took.Round(100 * time.Millisecond).String()
	if strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]") {
		return result{unbuilt, firstWith(out, ".go:")}
	}
	for _, sign := range []string{"--- FAIL: ", "panic: ", "fatal error: "} {
		if line := firstWith(out, sign); line != "" {
			return result{noticed, line + ", " + seconds}
		}
	}
	return result{noticed, "no tests passed, " + seconds}
}

func firstWith(out, part string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, part) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " (0.")
			return line
		}
	}
	return ""
}

func (s *suites) test(ctx context.Context, args ...string) (string, error) {
	always := []string{"test", "-count=1", "-vet=off", "-failfast", "-timeout=" + s.cfg.timeout.String()}
	return s.output(ctx, append(always, args...)...)
}

// output runs go, and takes what it started along when ctx ends.
func (s *suites) output(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.cfg.root
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
