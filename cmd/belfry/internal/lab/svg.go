package lab

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// A plot's measures, in pixels.
const (
	plotWidth  = 640
	plotHeight = 260
	plotLeft   = 64
	plotRight  = 20
	plotTop    = 10
	plotBottom = 28
	barHeight  = 20
)

// line is one policy in a plot.
type line struct {
	name   string
	class  string
	points []float64
}

// quantilePlot draws latencies over quantiles: the tail is stretched, and latencies are on a logarithmic scale.
func quantilePlot(unit string, lines []line) template.HTML {
	low, high := extent(lines)
	if low >= high {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="Latency in %s by quantile">`, plotWidth, plotHeight, unit)
	y := func(v float64) float64 {
		part := (math.Log(v) - math.Log(low)) / (math.Log(high) - math.Log(low))
		return plotHeight - plotBottom - part*(plotHeight-plotTop-plotBottom)
	}
	x := func(i int) float64 {
		return plotLeft + float64(i)/float64(len(CurveAt)-1)*(plotWidth-plotLeft-plotRight)
	}
	for _, v := range ticks(low, high) {
		fmt.Fprintf(&b, `<path class="rule" d="M%d %.1fH%d"/><text class="tick" x="%d" y="%.1f" text-anchor="end">%s</text>`,
			plotLeft, y(v), plotWidth-plotRight, plotLeft-6, y(v)+4, tick(v))
	}
	for i, at := range CurveAt {
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%d" text-anchor="middle">%s</text>`, x(i), plotHeight-8, tick(at*100))
	}
	for _, l := range lines {
		var path strings.Builder
		pen := "M"
		for i, v := range l.points {
			if !drawable(v) {
				continue
			}
			fmt.Fprintf(&path, "%s%.1f %.1f", pen, x(i), y(v))
			pen = "L"
		}
		fmt.Fprintf(&b, `<path class="line %s" d="%s"><title>%s</title></path>`, l.class, path.String(), template.HTMLEscapeString(l.name))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func drawable(v float64) bool { return v > 0 && !math.IsNaN(v) && !math.IsInf(v, 0) }

func extent(lines []line) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, l := range lines {
		for _, v := range l.points {
			if drawable(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return low * 0.95, high * 1.05
}

// ticks are round numbers from low to high: powers of ten, with 2 and 5 in between if there is room.
func ticks(low, high float64) []float64 {
	steps := []float64{1, 2, 5}
	if high/low > 1000 {
		steps = steps[:1]
	}
	var all []float64
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, step := range steps {
			if v := step * power; v >= low && v <= high {
				all = append(all, v)
			}
		}
	}
	return all
}

func tick(v float64) string { return fmt.Sprintf("%.4g", v) }

// barPlot draws one number for each policy.
func barPlot(name string, lines []line) template.HTML {
	most := 0.0
	for _, l := range lines {
		if v := l.points[0]; drawable(v) {
			most = max(most, v)
		}
	}
	if most == 0 {
		return ""
	}
	const left = 170
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s by policy">`,
		plotWidth, len(lines)*barHeight+4, template.HTMLEscapeString(name))
	for i, l := range lines {
		v, y := l.points[0], i*barHeight
		width := 0.0
		if drawable(v) {
			width = v / most * (plotWidth - left - 80)
		}
		fmt.Fprintf(&b, `<text class="tick" x="%d" y="%d" text-anchor="end">%s</text><rect class="bar %s" x="%d" y="%d" width="%.1f" height="%d"/>`+
			`<text class="tick" x="%.1f" y="%d">%s</text>`,
			left-8, y+15, template.HTMLEscapeString(l.name), l.class, left, y+4, width, barHeight-6, left+width+6, y+15, number(v))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
