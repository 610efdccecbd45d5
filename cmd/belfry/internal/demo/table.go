package demo

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/dustin/go-humanize"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab"
)

// nameWidth is that of the longest policy's name.
const nameWidth = len("peakewma")

// styles are how the tables look. The zero value is plain text.
type styles struct{ title, head, good, faint lipgloss.Style }

func colourful() styles {
	return styles{
		title: lipgloss.NewStyle().Bold(true),
		head:  lipgloss.NewStyle().Bold(true),
		good:  lipgloss.NewStyle().Foreground(lipgloss.Green),
		faint: lipgloss.NewStyle().Faint(true),
	}
}

// conclusion is the table at the end: a column for each policy, and a row for each number and each endpoint, which fits any
// terminal however many endpoints there are.
func conclusion(of plan, policies []PolicyResult, interrupted bool, st styles) string {
	if len(policies) == 0 {
		return "Nothing was measured.\n"
	}
	headers := []string{""}
	for _, p := range policies {
		headers = append(headers, p.Name)
	}
	rows := slices.Concat(numberRows(policies), matterRows(of, policies))
	if of.Name == lab.DefaultDemo {
		rows = append(rows, shareRows(of, policies)...)
	}
	t := grid(st, headers, rows)
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", st.title.Render("Latency from the moment a request was due"))
	fmt.Fprintf(&b, "scenario %s, %s requests/s for %v each, seed %d", of.Name, humanize.Comma(int64(of.Rate)), of.Run, of.seed)
	if interrupted {
		b.WriteString(", but interrupted")
	}
	b.WriteString("\n\n")
	b.WriteString(tidy(t.Render()))
	b.WriteString(verdict(of, policies))
	b.WriteString(warning(policies))
	return b.String()
}

func numberRows(policies []PolicyResult) [][]string {
	names := []string{"requests", "errors", "p50", "p90", "p99", inLab, "p99.9"}
	rows := make([][]string, len(names))
	for i, name := range names {
		rows[i] = []string{name}
	}
	for _, p := range policies {
		labP99 := "–"
		if p.Lab != nil {
			labP99 = optional(&p.Lab.P99)
		}
		for i, cell := range []string{
			humanize.Comma(p.Requests), humanize.Comma(p.Errors),
			optional(p.P50), optional(p.P90), optional(p.P99), labP99, optional(p.P999),
		} {
			rows[i] = append(rows[i], cell)
		}
	}
	return rows
}

// inLab begins the rows that say what the lab has for the figures above.
const inLab = "  in the lab"

// matterRows are what the scenario is about, each figure above what the lab says.
func matterRows(of plan, policies []PolicyResult) [][]string {
	rows := [][]string{make([]string, len(policies)+1)}
	add := func(name string, cell func(Figures) string) {
		here, there := []string{name}, []string{inLab}
		for _, p := range policies {
			here = append(here, cell(p.Figures))
			if p.Lab == nil {
				there = append(there, "–")
				continue
			}
			there = append(there, cell(p.Lab.Figures))
		}
		rows = append(rows, here, there)
	}
	add(of.OddName, func(f Figures) string { return percent(f.OddShare) })
	switch of.Judged {
	case lab.Stuck:
		add("over 500 ms", func(f Figures) string { return count(f.Stuck) })
	case lab.Tail, lab.Kept: // there are rows for it
	case lab.Failed:
		add("failed", func(f Figures) string { return count(f.Failed) })
	}
	return rows
}

func shareRows(of plan, policies []PolicyResult) [][]string {
	rows := [][]string{make([]string, len(policies)+1), make([]string, len(policies)+1)}
	rows[1][0] = "answered by"
	for i, s := range of.Servers {
		cells := []string{"  " + s.Label}
		for _, p := range policies {
			cells = append(cells, percent(p.Endpoints[i].Share))
		}
		rows = append(rows, cells)
	}
	return rows
}

// verdict compares the first policy with the last in words.
func verdict(of plan, policies []PolicyResult) string {
	first, last := policies[0], policies[len(policies)-1]
	if len(policies) < 2 {
		return ""
	}
	between := func(what string, figure func(Figures) string) string {
		return fmt.Sprintf("\n%s: %s under %s, %s under %s.\n", what, figure(first.Figures), first.Name, figure(last.Figures), last.Name)
	}
	switch of.Judged {
	case lab.Stuck:
		return between("Requests over 500 ms", func(f Figures) string { return count(f.Stuck) })
	case lab.Failed:
		return between("Failed requests", func(f Figures) string { return count(f.Failed) })
	case lab.Tail: // below
	case lab.Kept:
		return between("Share of the "+of.OddName, func(f Figures) string { return percent(f.OddShare) })
	}
	if first.P99 == nil || last.P99 == nil || *last.P99 <= 0 {
		return ""
	}
	return fmt.Sprintf("\np99 under %s is %.1f times that under %s.\n", first.Name, float64(*first.P99 / *last.P99), last.Name)
}

// barHeader heads a column of bars, which unlike numbers begin at the left.
const barHeader = ""

// busy is how late the 99th of a hundred requests may be sent before the machine is too busy to measure on.
const busy = 20 * time.Millisecond

// warning says that the figures are not to be trusted, where they are not.
func warning(policies []PolicyResult) string {
	worst := policies[0]
	for _, p := range policies {
		if p.late > worst.late {
			worst = p
		}
	}
	if worst.late <= busy {
		return ""
	}
	text := fmt.Sprintf("This machine was busy: under %s, 1 %% of the requests were sent %v or more after they were due. "+
		"Part of the latency is the machine's, and the comparison may be unfair.", worst.Name, worst.late.Round(time.Millisecond))
	return "\n" + lipgloss.Wrap(text, textWidth, "") + "\n"
}

// grid is a table without lines but one below its headers.
func grid(st styles, headers []string, rows [][]string) *table.Table {
	return table.New().
		Border(lipgloss.NormalBorder()).BorderStyle(st.faint).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).
		Headers(headers...).Rows(rows...).
		StyleFunc(func(r, col int) lipgloss.Style {
			cell := lipgloss.NewStyle()
			if r == table.HeaderRow {
				cell = st.head
			}
			switch {
			case col > 0 && headers[col] == barHeader:
				cell = cell.PaddingLeft(2)
			case col > 0:
				cell = cell.Align(lipgloss.Right).PaddingLeft(2)
			}
			return cell
		})
}

// tidy cuts the spaces that a table leaves at the ends of its lines.
func tidy(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text + "\n") {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
	return b.String()
}

// count writes a number of requests, which is whole but for means.
func count(n float64) string {
	if n == math.Trunc(n) {
		return humanize.Comma(int64(n))
	}
	return humanize.FormatFloat("#,###.#", n)
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", share*100) }

// optional is a latency with one digit after the point, or a dash.
func optional(ms *Milliseconds) string {
	if ms == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f ms", float64(*ms))
}

func duration(d time.Duration) string {
	ms := milliseconds(d)
	return optional(&ms)
}
