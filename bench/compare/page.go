package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const introduction = `# Benchmarks

Written by ` + "`make bench`" + `, which runs belfry and its peers in turn; not by hand. Each round runs every job once, the peers first. A
figure is the median of the rounds, a ratio the median of the ratios within each round, and the spread is where
the middle half of the rounds lies. Every job is done for 30 ms before it is measured. Times depend on the machine: they are for orientation, ratios and allocations count. On one
processor time is what the process computed, garbage collection included, so that other work on the machine hardly counts; on
several, and over loopback, where servers compute as well, it is the clock's. All call the same function, which returns what it is given, under a context.

`

// page returns what was measured as a page.
func page(about machine, rounds []round) string {
	var b strings.Builder
	b.WriteString(introduction)
	about.write(&b)
	writeTargets(&b, rounds)
	writeAll(&b, rounds)
	return b.String()
}

func writeTargets(b *strings.Builder, rounds []round) {
	b.WriteString("## Targets\n\nA ratio says how many times as long the peer takes: above 1, belfry is faster. " +
		"A target in brackets is for orientation.\n\n| job | figure | target | measured | spread | |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, t := range targets() {
		s := across(rounds, t.figure)
		wanted := ""
		if t.bound != shown {
			wanted = fmt.Sprintf("%s %s", t.bound, format(t.limit, t.unit))
		}
		if t.absolute && wanted != "" {
			wanted = "(" + wanted + ")"
		}
		measured, width := "not measured", ""
		if s.n > 0 {
			measured, width = format(s.median, t.unit), format(s.low, t.unit)+" to "+format(s.high, t.unit)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", t.job, t.what, wanted, measured, width, verdict(t, s))
	}
	b.WriteString("\n")
}

func verdict(t target, s spread) string {
	switch {
	case s.n == 0 || t.bound == shown:
		return ""
	case t.met(s.median):
		return "met"
	case t.absolute:
		return "missed, for orientation"
	}
	return "**missed**"
}

// format writes a number as exactly as it matters.
func format(v float64, unit string) string {
	digits := 0
	switch {
	case unit == "x" && v < 9.95, unit == "%":
		digits = 1
	case unit == "ns" && v < 9.95 && v > -9.95 && v != float64(int(v)):
		digits = 1
	case unit == "B" && v != float64(int(v)): // a share of what all waiters have together may be what is too much
		digits = 1
	}
	if unit == "x" && v < 0.995 {
		digits = 2
	}
	return strings.TrimRight(fmt.Sprintf("%.*f %s", digits, v, unit), " ")
}

// A way is one column: a mode, on so many processors.
type way struct{ mode, suffix, title string }

var ways = []way{
	{"serial", "", "one caller"},
	{"parallel", "", "64 callers, 1 processor"},
	{"parallel", "-2", "2 processors"},
	{"parallel", "-8", "8 threads"},
}

// writeAll writes a table for each job, and a row for each case and contender: the median time, how much half of the
// spread is of it, and the allocations.
func writeAll(b *strings.Builder, rounds []round) {
	b.WriteString("## Everything\n\nNanoseconds for a call, ± half of the spread, and allocations where there are any. With 64 callers the time is " +
		"that of all calls together, divided by their number.\n")
	job := ""
	for _, row := range rows(rounds) {
		if row.job != job {
			job = row.job
			fmt.Fprintf(b, "\n### %s\n\n| case | contender |", job)
			for _, w := range ways {
				fmt.Fprintf(b, " %s |", w.title)
			}
			b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(ways)) + "\n")
		}
		fmt.Fprintf(b, "| %s | %s |", row.name, row.contender)
		for _, w := range ways {
			fmt.Fprintf(b, " %s |", cell(rounds, row.job+"/"+row.name+"/"+w.mode+"/"+row.contender+w.suffix))
		}
		b.WriteString("\n")
	}
}

func cell(rounds []round, name string) string {
	took := across(rounds, ns(name))
	if took.n == 0 {
		return ""
	}
	text := fmt.Sprintf("%s ± %.0f %%", strings.TrimSuffix(format(took.median, "ns"), " ns"), 50*(took.high-took.low)/took.median)
	if allocs := across(rounds, allocs(name)); allocs.median > 0 {
		text += fmt.Sprintf(", %.0f allocs", allocs.median)
	}
	return text
}

type row struct{ job, name, contender string }

// rows returns what there is in the order of the names, but the contender belfry last.
func rows(rounds []round) []row {
	seen := map[row]bool{}
	for _, r := range rounds {
		for name := range r {
			parts := strings.Split(name, "/")
			if len(parts) != 4 || parts[0] == "Memory" || parts[1] == "none-of-1000" {
				continue // their times say nothing
			}
			contender := parts[3]
			for _, w := range ways {
				if w.suffix != "" {
					contender = strings.TrimSuffix(contender, w.suffix)
				}
			}
			seen[row{parts[0], parts[1], contender}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b row) int {
		return strings.Compare(a.key(), b.key())
	})
}

func (r row) key() string {
	last := "0"
	if strings.HasPrefix(r.contender, "belfry") {
		last = "1"
	}
	return r.job + "/" + natural(r.name) + "/" + last + r.contender
}

// natural makes the numbers at the end of names sort by size.
func natural(name string) string {
	head, digits, ok := strings.Cut(name, "-")
	if !ok || strings.Trim(digits, "0123456789") != "" {
		return name
	}
	return fmt.Sprintf("%s-%9s", head, digits)
}

func today() string { return time.Now().UTC().Format("2 January 2006") }
