package demo

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/dustin/go-humanize"
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

// comparison is the table at the end: a column for each policy, and a row for each number and each endpoint, which fits any
// terminal however many endpoints there are.
func comparison(cfg Config, policies []PolicyResult, interrupted bool, st styles) string {
	if len(policies) == 0 {
		return "Nothing was measured.\n"
	}
	headers := []string{""}
	for _, p := range policies {
		headers = append(headers, p.Name)
	}
	rows := append(numberRows(policies), shareRows(policies)...)
	t := grid(st, headers, rows)
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", st.title.Render("Latency from the moment a request was due"))
	fmt.Fprintf(&b, "%s requests/s for %v each, seed %d", humanize.Comma(int64(cfg.Rate)), cfg.Duration, cfg.Seed)
	if interrupted {
		b.WriteString(", but interrupted")
	}
	b.WriteString("\n\n")
	b.WriteString(tidy(t.Render()))
	b.WriteString(verdict(policies))
	b.WriteString(warning(policies))
	return b.String()
}

func numberRows(policies []PolicyResult) [][]string {
	names := []string{"requests", "errors", "p50", "p90", "p99", "p99.9"}
	rows := make([][]string, len(names))
	for i, name := range names {
		rows[i] = []string{name}
	}
	for _, p := range policies {
		for i, cell := range []string{
			humanize.Comma(p.Requests), humanize.Comma(p.Errors),
			optional(p.P50), optional(p.P90), optional(p.P99), optional(p.P999),
		} {
			rows[i] = append(rows[i], cell)
		}
	}
	return rows
}

func shareRows(policies []PolicyResult) [][]string {
	rows := [][]string{make([]string, len(policies)+1), make([]string, len(policies)+1)}
	rows[1][0] = "answered by"
	for i, most := range spread {
		cells := []string{"  " + upTo(most)}
		for _, p := range policies {
			cells = append(cells, percent(p.Endpoints[i].Share))
		}
		rows = append(rows, cells)
	}
	return rows
}

// verdict compares the first policy with the last in words, where both have a 99th percentile.
func verdict(policies []PolicyResult) string {
	first, last := policies[0], policies[len(policies)-1]
	if len(policies) < 2 || first.P99 == nil || last.P99 == nil || *last.P99 <= 0 {
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

// upTo names a server by its latency.
func upTo(most time.Duration) string { return fmt.Sprintf("up to %4d ms", most.Milliseconds()) }

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
