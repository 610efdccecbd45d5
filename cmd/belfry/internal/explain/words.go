package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// because ends a sentence with a reason, if there is one.
func because(reason string) string {
	if reason == "" {
		return "."
	}
	return ": " + strings.TrimRight(reason, ".") + "."
}

func (v *view) since(at time.Time) string { return seconds(max(v.Time.Sub(at), 0).Seconds()) }

func percent(share float64) string { return figure(100*share) + " %" }

func seconds(s float64) string {
	if s >= 120 {
		return time.Duration(s * float64(time.Second)).Round(time.Second).String()
	}
	return figure(s) + " s"
}

func milliseconds(ms float64) string { return figure(ms) + " ms" }

func times(n float64) string { return figure(n) }

// figure writes x with three digits that count, and no exponent.
func figure(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	short, _ := strconv.ParseFloat(fmt.Sprintf("%.3g", x), 64)
	return strconv.FormatFloat(short, 'f', -1, 64)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
