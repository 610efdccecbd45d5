package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// A runner runs benchmarks.
type runner struct {
	binary   string // of package bench
	tower    string // empty if there is none
	time     time.Duration
	progress io.Writer
}

func (r *runner) build() error {
	goTool := os.Getenv("GO")
	if goTool == "" {
		goTool = "go"
	}
	_, err := output(goTool, "test", "-c", "-o", r.binary, ".")
	return err
}

// rounds runs everything n times.
func (r *runner) rounds(n int) ([]round, error) {
	list, err := output(r.binary, "-test.list=^Benchmark")
	if err != nil {
		return nil, err
	}
	jobs := strings.Fields(list)
	start := time.Now()
	var measured []round
	for i := range n {
		one := round{}
		for _, job := range jobs {
			if err := r.once(job, one); err != nil {
				return nil, err
			}
		}
		measured = append(measured, one)
		fmt.Fprintf(r.progress, "compare: round %d of %d, %.0f s\n", i+1, n, time.Since(start).Seconds())
	}
	return measured, nil
}

// once runs a job in all ways. Jobs have their own processes: what one leaves behind is not the next one's.
func (r *runner) once(job string, into round) error {
	for _, mode := range []struct{ name, cpus string }{{"serial", "1"}, {"parallel", "1,2,8"}} {
		text, err := output(r.binary, "-test.run=^$", "-test.bench=^"+job+"$/./^"+mode.name+"$/.",
			"-test.cpu="+mode.cpus, "-test.benchtime="+r.time.String(), "-test.timeout=5m")
		if err != nil {
			return err
		}
		into.read(text)
	}
	if r.tower == "" {
		return nil
	}
	text, err := output(r.tower, strings.TrimPrefix(job, "Benchmark")+"/", fmt.Sprint(r.time.Milliseconds()))
	if err != nil {
		return err
	}
	into.read(text)
	return nil
}

// smoke runs what promises not to allocate.
func (r *runner) smoke() error {
	text, err := output(r.binary, "-test.run=^$", "-test.bench=././^serial$/^belfry", "-test.skip=^BenchmarkMemory$|^BenchmarkHTTP$/^(loopback|fake,each)$|^BenchmarkBalance$/-10000$",
		"-test.cpu=1", "-test.benchtime=1000x", "-test.timeout=2m")
	if err != nil {
		return err
	}
	got := round{}
	got.read(text)
	broken := broken(got)
	for _, line := range broken {
		fmt.Fprintln(r.progress, line)
	}
	if len(broken) > 0 {
		return fmt.Errorf("%d promises about allocations broken", len(broken))
	}
	fmt.Fprintf(r.progress, "compare: %d benchmarks allocate no more than promised\n", len(got))
	return nil
}

// output runs a program and returns what it prints; if it fails, that is in the error.
func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(slices.Concat([]string{name}, args), " "), err, text)
	}
	return string(text), nil
}
