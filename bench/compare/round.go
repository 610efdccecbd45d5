package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// A round is what one run of everything measured: by benchmark, as go test prints its name without "Benchmark", and unit.
// A name that ends in -2 is of two processors.
type round map[string]map[string]float64

// read adds the benchmarks in text, which is what go test -bench prints.
func (r round) read(text string) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		values := map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				values[fields[i+1]] = value
			}
		}
		r[strings.TrimPrefix(fields[0], "Benchmark")] = values
	}
}

// A figure is a number that a round has, or has not.
type figure func(round) (float64, bool)

func value(name, unit string) figure {
	return func(r round) (float64, bool) {
		v, ok := r[name][unit]
		return v, ok
	}
}

// ns is what the process computed for a call, if that was measured, else how long the call took.
func ns(name string) figure {
	return func(r round) (float64, bool) {
		if v, ok := r[name]["cpu-ns/op"]; ok {
			return v, true
		}
		v, ok := r[name]["ns/op"]
		return v, ok
	}
}

func allocs(name string) figure { return value(name, "allocs/op") }

// of combines two figures.
func of(a, b figure, combine func(a, b float64) float64) figure {
	return func(r round) (float64, bool) {
		x, okX := a(r)
		y, okY := b(r)
		return combine(x, y), okX && okY
	}
}

func over(a, b figure) figure  { return of(a, b, func(a, b float64) float64 { return a / b }) }
func minus(a, b figure) figure { return of(a, b, func(a, b float64) float64 { return a - b }) }

func by(a figure, n float64) figure {
	return of(a, a, func(a, _ float64) float64 { return a / n })
}

// A spread is the median of some rounds, and the ends of the middle half of them.
type spread struct {
	low, median, high float64
	n                 int
}

func across(rounds []round, f figure) spread {
	var values []float64
	for _, r := range rounds {
		if v, ok := f(r); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return spread{}
	}
	slices.Sort(values)
	return spread{quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75), len(values)}
}

// quantile is that of sorted values, on the line between two of them.
func quantile(values []float64, q float64) float64 {
	at := q * float64(len(values)-1)
	below := int(at)
	if below+1 == len(values) {
		return values[below]
	}
	return values[below] + (at-float64(below))*(values[below+1]-values[below])
}
