package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const sample = `package sample

func Sign(n int) (int, error) {
	if n < 0 {
		return -1, nil
	}
	n++
	return n, err
}
`

func sampled(t *testing.T) [][]mutant {
	t.Helper()
	lines, err := mutants(&source{"sample.go", ".", []byte(sample)})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestMutants(t *testing.T) {
	want := map[string]bool{
		"4 return *new(int), *new(error); if n < 0 {": true,
		"4 if !(n < 0) {":                      true,
		"4 if n <= 0 {":                        true,
		"4 if n < (0 + 1) {":                   true,
		"4 if n < (0 - 1) {":                   true,
		"5 return -(1 + 1), nil":               true,
		"5 return -(1 - 1), nil":               true,
		"7 return *new(int), *new(error); n++": true,
		"7 ":                                   true,
		"7 n--":                                true,
		"8 return n, nil":                      true,
	}
	for _, line := range sampled(t) {
		for _, m := range line {
			_, after := m.change()
			got := string(rune('0'+m.line)) + " " + strings.TrimSpace(after)
			if !want[got] {
				t.Errorf("unwanted: %q", got)
			}
			delete(want, got)
			if lines := bytes.Count(m.text(), []byte("\n")); lines != strings.Count(sample, "\n") {
				t.Errorf("%v: %d lines", m, lines)
			}
		}
	}
	for missing := range want {
		t.Errorf("missing: %q", missing)
	}
}

func TestPickRepeats(t *testing.T) {
	lines := sampled(t)
	a, b := pick(lines, rand.New(rand.NewPCG(7, 0))), pick(lines, rand.New(rand.NewPCG(7, 0)))
	for i, m := range a {
		if m != b[i] {
			t.Errorf("%v, and then %v", m, b[i])
		}
	}
}

// A module of its own has one function that its test looks at, and one that it does not.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module sample\n\ngo 1.26.0\n",
		"known.md":    "- `b/b.go`: `return n == 0` → `return n != 0`: nobody calls it.\n",
		"a/a.go":      "package a\n\nfunc Zero(n int) bool { return n == 0 }\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestZero(t *testing.T) {\n\tif !Zero(0) || Zero(1) || Zero(-1) {\n\t\tt.Error()\n\t}\n}\n",
		"b/b.go":      "package b\n\nfunc Zero(n int) bool {\n\treturn n == 0\n}\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verdictOfB := map[bool]string{true: "equivalent     b/b.go:4: != instead of ==", false: "SURVIVED       b/b.go:4: one "}
	for seed, seen := uint64(0), map[bool]bool{}; len(seen) < 2; seed++ {
		var out bytes.Buffer
		ok, err := run(t.Context(), config{
			root: dir, packages: []string{"a", "b"}, seed: seed, lines: 2, workers: 2, timeout: time.Minute, equivalent: "known.md",
		}, &out)
		if err != nil {
			t.Fatal(err)
		}
		seen[ok] = true
		for _, want := range []string{"noticed        a/a.go:3: ", verdictOfB[ok], "1 noticed, "} {
			if !strings.Contains(out.String(), want) {
				t.Fatalf("seed %d: no %q in\n%s", seed, want, &out)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	for out, want := range map[string]result{
		"# x\n./x.go:3:1: declared and not used: y\nFAIL\tx [build failed]\n": {unbuilt, "./x.go:3:1: declared and not used: y"},
		"--- FAIL: TestX (0.00s)\n    x_test.go:1: no\n":                      {noticed, "--- FAIL: TestX, 1s"},
		"panic: test timed out after 1m0s\n":                                  {noticed, "panic: test timed out after 1m0s, 1s"},
	} {
		if got := judge(out, time.Second); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
