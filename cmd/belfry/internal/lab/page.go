package lab

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"heading": heading, "capital": capital}).Parse(pageText))

// pageData is what the page shows.
type pageData struct {
	Seeds    int
	Verdicts table
	Bounds   table
	Sections []pageSection
}

type table struct {
	Headers []string
	Rows    [][]string
}

type pageSection struct {
	Scenario Scenario
	Legend   []legend
	Parts    []pagePart
}

type legend struct{ Name, Class string }

type pagePart struct {
	Title  string
	Plots  []pagePlot
	Tables []table
}

type pagePlot struct {
	Title string
	Plot  template.HTML
}

// WritePage writes one HTML page that needs nothing else.
func (r Report) WritePage(w io.Writer) error {
	data := pageData{Seeds: ReportSeeds}
	data.Verdicts.Headers = []string{"scenario", "figure", "default", "", "best rival", "", "the default is"}
	for _, s := range r.Sections {
		for _, v := range Verdicts(s.Scenario, s.Rows) {
			data.Verdicts.Rows = append(data.Verdicts.Rows, []string{
				v.Scenario, heading(v.Figure), v.Policy, number(v.Value), v.Rival, number(v.Best), strings.Trim(v.String(), "*"),
			})
		}
		data.Sections = append(data.Sections, s.page())
	}
	data.Bounds.Headers = []string{"scenario", "figure", "policy", "target", "tuned", "fresh", ""}
	for _, c := range r.Checks {
		met := "met"
		if !c.Met() {
			met = "missed"
		}
		data.Bounds.Rows = append(data.Bounds.Rows, []string{
			c.Scenario, heading(c.Figure), c.Policy, c.Wants(), number(c.Tuned), number(c.Fresh), met,
		})
	}
	return page.Execute(w, data)
}

func (s Section) page() pageSection {
	p := pageSection{Scenario: s.Scenario}
	for _, row := range s.Rows {
		p.Legend = append(p.Legend, legend{row.Policy, class(row.Policy)})
	}
	tables := grids(s.Scenario, s.Rows)
	for i, part := range s.Scenario.Parts {
		of := pagePart{Title: part.Name, Plots: s.plots(i)}
		if len(tables) == len(s.Scenario.Parts) {
			of.Tables = []table{{tables[i].headers, tables[i].rows}}
		} else if i == 0 {
			of.Tables = []table{{tables[0].headers, tables[0].rows}}
		}
		p.Parts = append(p.Parts, of)
	}
	return p
}

// plots are bars of the figure that a part is judged by, or its first, and its curves if there are any.
func (s Section) plots(part int) []pagePlot {
	judged := s.Rows[0].Parts[part].Figures[0].Name
	if s.Scenario.Judged != "" {
		judged = s.Scenario.Judged
	}
	var bars, curves []line
	for _, row := range s.Rows {
		o := row.Parts[part]
		bars = append(bars, line{row.Policy, class(row.Policy), []float64{valueOf(o, judged)}})
		if o.Curve != nil {
			curves = append(curves, line{row.Policy, class(row.Policy), o.Curve})
		}
	}
	plots := []pagePlot{{heading(judged), barPlot(judged, bars)}}
	if curves != nil {
		plots = append(plots, pagePlot{"latency in " + s.Scenario.Unit + " that so many per cent do not exceed", quantilePlot(s.Scenario.Unit, curves)})
	}
	return plots
}

// class is the colour of a policy, the same in all plots.
func class(policy string) string {
	plain, _, decays := strings.Cut(policy, "/")
	i := slices.IndexFunc(sim.Policies(), func(p sim.Policy) bool { return p.Name == plain })
	if i < 0 {
		return "p-own"
	}
	if decays {
		return "p-" + plain + " dashed"
	}
	return "p-" + plain
}
