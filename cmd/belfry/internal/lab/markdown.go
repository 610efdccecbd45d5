package lab

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// ReportSeeds is over how many seeds, from 1 on, a report takes means.
const ReportSeeds = 5

// A Report is everything that the lab found.
type Report struct {
	Sections []Section
	Checks   []Check
}

// A Section is one scenario.
type Section struct {
	Scenario Scenario
	Rows     []Row
}

// MakeReport runs everything, which takes minutes. It tells progress the name of each scenario before it runs.
func MakeReport(progress func(string)) (Report, error) {
	var r Report
	for _, s := range Scenarios() {
		progress(s.Name)
		r.Sections = append(r.Sections, Section{s, Run(Plan{Scenario: s, Seed: 1, Seeds: ReportSeeds})})
	}
	progress("bounds")
	var err error
	r.Checks, err = CheckBounds(nil)
	return r, err
}

// WriteMarkdown writes the tables.
func (r Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(markdownHead)
	r.verdicts(&b)
	r.bounds(&b)
	r.published(&b)
	b.WriteString("\n## All figures\n")
	for _, s := range r.Sections {
		s.markdown(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var markdownHead = fmt.Sprintf(`# How the default chooses, and what it is compared with

<!-- Written by: belfry lab report. Edit the lab, not this page. -->

These figures come from a simulation that drives the code of package load and internal/pick in virtual time. A seed determines
them, so anybody gets the same ones: `+"`belfry lab run SCENARIO --seeds %d`"+`. Each is the mean over the seeds 1 to %d; differences below
%.0f %% are chance. `+"`belfry lab list`"+` says what the scenarios and policies are, and `+"`belfry lab advise FLEET.yaml`"+` runs them on a fleet of
your own. What comes of it on real servers stands in [demo.md](demo.md).

Where not said otherwise the decay is %v; after a slash stands another one. The fleets' mean service time is 100 ms, so that is a hundred service times.
`, ReportSeeds, ReportSeeds, Slack*100, sim.DefaultDecay)

func (r Report) verdicts(b *strings.Builder) {
	b.WriteString("\n## The default against its rivals\n\nThe rivals are plain requests in flight, Peak EWMA, and Peak EWMA with a penalty of 5 s for a failure; the best of them, with the same decay, counts.\n\n")
	rows := [][]string{}
	for _, s := range r.Sections {
		for _, v := range Verdicts(s.Scenario, s.Rows) {
			rows = append(rows, []string{v.Scenario, heading(v.Figure), v.Policy, number(v.Value), v.Rival, number(v.Best), v.String()})
		}
	}
	pipes(b, []string{"scenario", "figure", "default", "", "best rival", "", "the default is"}, rows)
}

// String says it in words.
func (v Verdict) String() string {
	switch {
	case v.Equal():
		return "equal"
	case v.Change > 10:
		return "**much worse**"
	case v.Change > 0:
		return fmt.Sprintf("**%.0f %% worse**", v.Change*100)
	default:
		return fmt.Sprintf("%.0f %% better", -v.Change*100)
	}
}

func (r Report) bounds(b *strings.Builder) {
	fmt.Fprintf(b, "\n## What is asked of it, and what was reached\n\n"+
		"Means over the seeds %d to %d, with which the cost was tuned, and over %d to %d, which were not looked at before.\n\n",
		tunedFrom, tunedFrom+boundSize-1, freshFrom, freshFrom+boundSize-1)
	rows := [][]string{}
	for _, c := range r.Checks {
		met := "met"
		if !c.Met() {
			met = "**missed**"
		}
		if c.Tried != "" {
			met += ": " + c.Tried
		}
		rows = append(rows, []string{c.Scenario, heading(c.Figure), c.Policy, c.Wants(), number(c.Tuned), number(c.Fresh), met})
	}
	pipes(b, []string{"scenario", "figure", "policy", "target", "tuned", "fresh", ""}, rows)
}

func (r Report) published(b *strings.Builder) {
	b.WriteString("\n## What others found\n\nThe lab has to agree with these before its own figures mean anything.\n\n")
	rows := [][]string{}
	for _, p := range PublishedFigures() {
		if v, ok := r.figure(p.Scenario, p.Policy, p.Figure); ok {
			verdict := "agrees"
			if !p.Agrees(v) {
				verdict = "**differs**"
			}
			rows = append(rows, []string{p.Scenario, heading(p.Figure), p.Policy, number(p.Value), number(v), verdict, p.Source})
		}
	}
	pipes(b, []string{"scenario", "figure", "policy", "published", "here", "", "by"}, rows)
}

func (r Report) figure(scenario, policy, figure string) (float64, bool) {
	for _, s := range r.Sections {
		if s.Scenario.Name != scenario {
			continue
		}
		for _, row := range s.Rows {
			if row.Policy == policy {
				return row.Figure(s.Scenario, figure)
			}
		}
	}
	return 0, false
}

func (s Section) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s\n\n%s. Latencies are in %s.\n", s.Scenario.Name, capital(s.Scenario.About), s.Scenario.Unit)
	for _, g := range grids(s.Scenario, s.Rows) {
		b.WriteByte('\n')
		if g.title != "" {
			fmt.Fprintf(b, "%s:\n\n", heading(g.title))
		}
		pipes(b, g.headers, g.rows)
	}
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// pipes writes a Markdown table.
func pipes(b *strings.Builder, headers []string, rows [][]string) {
	rule := slices.Repeat([]string{"---"}, len(headers))
	for _, line := range append([][]string{headers, rule}, rows...) {
		fmt.Fprintf(b, "| %s |\n", strings.Join(line, " | "))
	}
}
