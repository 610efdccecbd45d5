package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A machine is where and with what was measured.
type machine struct {
	processor, kernel     string
	goVersion, commit     string
	peers                 []string
	loadBefore, loadAfter string
	rounds                int
	time                  time.Duration
}

func describe(tower string) machine {
	m := machine{
		processor:  processor(),
		kernel:     line("uname", "-sr"),
		goVersion:  runtime.Version(),
		commit:     line("git", "describe", "--always", "--dirty"),
		loadBefore: loadAverage(),
	}
	list := line("go", "list", "-m", "-f", "{{if not (or .Main .Indirect .Replace)}}{{.Path}} {{.Version}}{{end}}", "all")
	m.peers = strings.Split(list, "\n")
	if tower != "" {
		m.peers = append(m.peers, crates("tower/Cargo.lock")...)
		m.peers = append(m.peers, line("rustc", "--version"))
	}
	return m
}

// line returns what a program prints, or that it is not known.
func line(name string, args ...string) string {
	text, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
}

// crates returns the versions of those that matter, from the file that cargo writes when it builds.
func crates(lock string) (versions []string) {
	text, _ := os.ReadFile(filepath.FromSlash(lock))
	name := ""
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
		value = strings.Trim(value, `"`)
		switch {
		case key == "name":
			name = value
		case key == "version" && (name == "tower" || name == "tokio"):
			versions = append(versions, name+" "+value+" (Rust)")
		}
	}
	return versions
}

func (m machine) write(b *strings.Builder) {
	fmt.Fprintf(b, "- %s, %d processors, %s\n", m.processor, runtime.NumCPU(), m.kernel)
	fmt.Fprintf(b, "- %s, %d rounds of %v for each benchmark, load of the machine %s before and %s after (its own is about 1)\n",
		today(), m.rounds, m.time, m.loadBefore, m.loadAfter)
	fmt.Fprintf(b, "- %s, belfry %s\n", m.goVersion, m.commit)
	fmt.Fprintf(b, "- peers: %s\n", strings.Join(m.peers, ", "))
	if !strings.Contains(strings.Join(m.peers, " "), "(Rust)") {
		b.WriteString("- without tower, which was not installed\n")
	}
	b.WriteString("\n")
}
