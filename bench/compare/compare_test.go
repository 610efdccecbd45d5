package main

import (
	"slices"
	"strings"
	"testing"
)

const printed = `goos: linux
BenchmarkLimit/success/serial/semaphore         	  100	        30.0 ns/op	      0 B/op	       0 allocs/op
BenchmarkLimit/success/serial/belfry            	  100	        90.0 ns/op	     15 cpu-ns/op	      0 B/op	       0 allocs/op
BenchmarkLimit/success/parallel/belfry-2        	  100	        12.0 ns/op	      0 B/op	       0 allocs/op
--- BENCH: BenchmarkLimit
PASS
`

func TestRead(t *testing.T) {
	r := round{}
	r.read(printed)
	if len(r) != 3 {
		t.Fatalf("got %v", r)
	}
	for _, c := range []struct {
		figure figure
		want   float64
	}{
		{ns("Limit/success/serial/semaphore"), 30},
		{ns("Limit/success/serial/belfry"), 15}, // what was computed, not what the clock says
		{ns("Limit/success/parallel/belfry-2"), 12},
		{over(ns("Limit/success/serial/semaphore"), ns("Limit/success/serial/belfry")), 2},
		{minus(ns("Limit/success/serial/semaphore"), ns("Limit/success/serial/belfry")), 15},
		{by(ns("Limit/success/serial/semaphore"), 5), 6},
	} {
		if got, ok := c.figure(r); !ok || got != c.want {
			t.Errorf("got %v, %v, want %v", got, ok, c.want)
		}
	}
	if _, ok := over(ns("Limit/success/serial/semaphore"), ns("nobody"))(r); ok {
		t.Error("a ratio to what was not measured")
	}
}

func TestAcross(t *testing.T) {
	var rounds []round
	for _, v := range []float64{50, 10, 40, 20, 30} {
		rounds = append(rounds, round{"x": {"ns/op": v}})
	}
	if got, want := across(rounds, ns("x")), (spread{20, 30, 40, 5}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := across(rounds[:2], ns("x")), (spread{20, 30, 40, 2}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := across(rounds, ns("y")); got != (spread{}) {
		t.Errorf("got %v of nothing", got)
	}
}

// kept returns a round in which all promises are kept.
func kept() round {
	r := round{}
	for name, most := range promises {
		r[name] = map[string]float64{"allocs/op": most}
	}
	return r
}

func TestBroken(t *testing.T) {
	if lines := broken(kept()); len(lines) > 0 {
		t.Fatal(lines)
	}
	for _, c := range []struct {
		name, want string
		spoil      func(round)
	}{
		{"one too many", "1 allocations, promised are 0", func(r round) { r["Limit/success/serial/belfry"]["allocs/op"] = 1 }},
		{"not counted", "promised are 0", func(r round) { r["Limit/success/serial/belfry"] = map[string]float64{"ns/op": 1} }},
		{"not run", "did not run", func(r round) { delete(r, "Limit/success/serial/belfry") }},
		{"new", "nothing is promised", func(r round) { r["New/success/serial/belfry"] = map[string]float64{"allocs/op": 0} }},
	} {
		r := kept()
		c.spoil(r)
		if lines := broken(r); len(lines) != 1 || !strings.Contains(lines[0], c.want) {
			t.Errorf("%s: got %q", c.name, lines)
		}
	}
	r := kept()
	r["New/failure/serial/belfry"] = map[string]float64{"allocs/op": 7}
	if lines := broken(r); len(lines) > 0 {
		t.Errorf("nothing is promised about failures: %q", lines)
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		target target
		median float64
		want   string
	}{
		{target{bound: atMost, limit: 5}, 5, "met"},
		{target{bound: atMost, limit: 5}, 5.1, "**missed**"},
		{target{bound: atLeast, limit: 5}, 5, "met"},
		{target{bound: atLeast, limit: 5}, 4.9, "**missed**"},
		{target{bound: atMost, limit: 5, absolute: true}, 6, "missed, for orientation"},
		{target{bound: shown}, 6, ""},
	} {
		if got := verdict(c.target, spread{median: c.median, n: 1}); got != c.want {
			t.Errorf("%v with %v: got %q, want %q", c.target, c.median, got, c.want)
		}
	}
	if got := verdict(target{bound: atMost, limit: 5}, spread{}); got != "" {
		t.Errorf("got %q for what was not measured", got)
	}
}

func TestFormat(t *testing.T) {
	for want, got := range map[string]string{
		"8 ns":    format(8, "ns"),
		"3.5 ns":  format(3.5, "ns"),
		"410 ns":  format(410.4, "ns"),
		"0.35 x":  format(0.35, "x"),
		"4.2 x":   format(4.2, "x"),
		"12 x":    format(12.4, "x"),
		"3":       format(3, ""),
		"0.2 %":   format(0.2, "%"),
		"256 B":   format(256, "B"),
		"256.3 B": format(256.31, "B"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Sizes are in their order, and belfry is last.
func TestRows(t *testing.T) {
	r := round{}
	for _, name := range []string{"B/n-100/serial/belfry", "B/n-3/serial/belfry", "B/n-3/parallel/belfry-8", "B/n-3/serial/zebra", "Memory/limit/serial/belfry"} {
		r[name] = map[string]float64{"ns/op": 1}
	}
	want := []row{{"B", "n-3", "zebra"}, {"B", "n-3", "belfry"}, {"B", "n-100", "belfry"}}
	if got := rows([]round{r}); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUnmeasured(t *testing.T) {
	r := round{}
	r.read(printed)
	all, some := len(targets()), len(unmeasured([]round{r}, true))
	if measured := all - some; measured != 3 { // time, allocations, the semaphore
		t.Errorf("%d targets of %d measured", measured, all)
	}
	for _, name := range unmeasured([]round{r}, false) {
		if strings.Contains(name, "tower") {
			t.Errorf("asked for %s without tower", name)
		}
	}
}

// A row of the page is found by its job and what it says.
func TestTargetsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, target := range targets() {
		name := target.job + ": " + target.what
		if seen[name] {
			t.Errorf("twice: %s", name)
		}
		seen[name] = true
	}
}

func TestPage(t *testing.T) {
	r := round{}
	r.read(printed)
	text := page(machine{processor: "abacus", peers: []string{"peer v1"}}, []round{r})
	for _, want := range []string{
		"- abacus, ", "- peers: peer v1\n", "without tower",
		"| concurrency limit | time | (≤ 40 ns) | 15 ns | 15 ns to 15 ns | met |\n",
		"| concurrency limit | x/sync semaphore, as many times as long |  | 2.0 x |",
		"| concurrency limit | tower, as many times as long |  | not measured |  |  |\n",
		"### Limit\n", "| success | semaphore | 30 ± 0 % |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
