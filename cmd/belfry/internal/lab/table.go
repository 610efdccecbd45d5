package lab

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	lines "charm.land/lipgloss/v2/table"
)

// A grid is a table of text.
type grid struct {
	title   string
	headers []string
	rows    [][]string
}

// grids returns the tables of a scenario. Parts with one figure each share a table.
func grids(s Scenario, rows []Row) []grid {
	if len(s.Parts) > 1 && !slices.ContainsFunc(rows[0].Parts, func(o Outcome) bool { return len(o.Figures) != 1 }) {
		return []grid{shared(s, rows)}
	}
	var all []grid
	for i, part := range s.Parts {
		g := grid{title: part.Name, headers: []string{"policy"}}
		for _, f := range rows[0].Parts[i].Figures {
			g.headers = append(g.headers, heading(f.Name))
		}
		for _, row := range rows {
			g.rows = append(g.rows, append([]string{row.Policy}, cells(row.Parts[i].Figures)...))
		}
		all = append(all, g)
	}
	return all
}

func shared(s Scenario, rows []Row) grid {
	g := grid{title: rows[0].Parts[0].Figures[0].Name, headers: []string{"policy"}}
	for _, part := range s.Parts {
		g.headers = append(g.headers, heading(part.Name))
	}
	for _, row := range rows {
		line := []string{row.Policy}
		for _, o := range row.Parts {
			line = append(line, cells(o.Figures)...)
		}
		g.rows = append(g.rows, line)
	}
	return g
}

func heading(name string) string { return strings.ReplaceAll(name, "_", " ") }

func cells(figures []Figure) []string {
	var all []string
	for _, f := range figures {
		all = append(all, number(f.Value))
	}
	return all
}

// number writes v with four digits that count, or as many as it has before the point.
func number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return "never"
	case a >= 1e9:
		return "never"
	case a == 0:
		return "0"
	case a >= 1000:
		return fmt.Sprintf("%.0f", v)
	case a >= 100:
		return fmt.Sprintf("%.1f", v)
	case a >= 10:
		return fmt.Sprintf("%.2f", v)
	case a >= 1:
		return fmt.Sprintf("%.3f", v)
	default:
		return fmt.Sprintf("%.5f", v)
	}
}

// WriteTable writes rows for people to read.
func WriteTable(w io.Writer, plan Plan, rows []Row) error {
	var b strings.Builder
	s := plan.Scenario
	fmt.Fprintf(&b, "%s: %s\n%s\n", s.Name, s.About, settings(plan))
	for _, g := range grids(s, rows) {
		b.WriteByte('\n')
		if g.title != "" {
			fmt.Fprintf(&b, "%s\n", g.title)
		}
		b.WriteString(draw(g))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func settings(plan Plan) string {
	text := fmt.Sprintf("latencies in %s, seed %d", plan.Scenario.Unit, plan.Seed)
	if plan.Seeds > 1 {
		text = fmt.Sprintf("latencies in %s, means over seeds %d to %d", plan.Scenario.Unit, plan.Seed, plan.Seed+uint64(plan.Seeds-1))
	}
	return text
}

// draw is the table without lines but one below its headers.
func draw(g grid) string {
	t := lines.New().
		Border(lipgloss.NormalBorder()).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).
		Headers(g.headers...).Rows(g.rows...).
		StyleFunc(func(_, col int) lipgloss.Style {
			if col == 0 {
				return lipgloss.NewStyle()
			}
			return lipgloss.NewStyle().Align(lipgloss.Right).PaddingLeft(2)
		})
	var b strings.Builder
	for line := range strings.Lines(t.Render() + "\n") {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	return b.String()
}
