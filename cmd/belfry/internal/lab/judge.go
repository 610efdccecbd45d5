package lab

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// rivals are what the default must not be worse than, with the same decay.
func rivals(decay string) []string {
	return []string{"in-flight", "peak-ewma" + decay, "peak-ewma-penalty" + decay}
}

// oracles know what no client can.
var oracles = []string{"p2c-oracle", "jsq-oracle"}

// A Verdict compares the default with the best of its rivals, in the figure that a scenario is judged by.
type Verdict struct {
	Scenario, Figure string
	Policy           string // the default, perhaps with another decay
	Value, Best      float64
	Rival            string
	// Change is how much worse the default is, as a share; below 0 it is better.
	Change float64
}

// Equal reports whether the difference is within what chance may do.
func (v Verdict) Equal() bool { return math.Abs(v.Change) <= Slack }

// Verdicts judges rows, those of a scenario. Scenarios that are not about the default have none.
func Verdicts(s Scenario, rows []Row) []Verdict {
	var all []Verdict
	for i, part := range s.Parts {
		for _, row := range rows {
			policy, decay, _ := strings.Cut(row.Policy, "/")
			if s.Judged == "" || policy != sim.Default {
				continue
			}
			v := Verdict{Scenario: s.Name, Figure: part.full(s.Judged), Policy: row.Policy, Value: valueOf(row.Parts[i], s.Judged)}
			if decay != "" {
				decay = "/" + decay
			}
			if v.against(s, i, rows, rivals(decay)); v.Rival != "" {
				all = append(all, v)
			}
		}
	}
	return all
}

// against finds the best of the rivals.
func (v *Verdict) against(s Scenario, part int, rows []Row, rivals []string) {
	for _, row := range rows {
		figure := valueOf(row.Parts[part], s.Judged)
		if slices.Contains(rivals, row.Policy) && (v.Rival == "" || s.better(figure, v.Best)) {
			v.Rival, v.Best = row.Policy, figure
		}
	}
	v.Change = s.worse(v.Value, v.Best)
}

func valueOf(o Outcome, name string) float64 {
	for _, f := range o.Figures {
		if f.Name == name {
			return f.Value
		}
	}
	return math.NaN()
}

func (s Scenario) better(a, b float64) bool {
	if s.Higher {
		return a > b
	}
	return a < b
}

// worse returns how much worse a is than b. Of shares of good requests, what is missing to all of them is compared.
func (s Scenario) worse(a, b float64) float64 {
	switch {
	case a == b:
		return 0
	case s.Higher && s.Missing:
		a, b = 1-a, 1-b
	case s.Higher:
		a, b = b, a
	}
	return a/b - 1
}

// Advice says which policy to take for a fleet.
type Advice struct {
	Take string
	// Loses says in what another policy would be better, and by how much.
	Loses []string
	// Gains says by how much it is better than each of the others, in the figure that decided.
	Gains []string
}

// tolerated is how many more requests may fail than with the policy that lets the fewest fail.
const tolerated = 0.001

// advisable are the figures that advice is about, in the order of their weight. Less is better in all of them.
var advisable = []string{"failed", "p99", "mean", "p50", "p999"}

// Advise judges the rows of a fleet: of the policies that let the fewest requests fail, the one with the lowest p99. Of equals the
// default, else the one with the lowest mean.
func Advise(rows []Row) Advice {
	candidates := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return slices.Contains(oracles, r.Policy) })
	candidates = least(candidates, "failed", func(low float64) float64 { return low + tolerated })
	candidates = least(candidates, "p99", func(low float64) float64 { return low * (1 + Slack) })
	take := candidates[0]
	for _, r := range candidates {
		switch {
		case r.Policy == sim.Default:
			take = r
		case take.Policy != sim.Default && valueOf(r.Parts[0], "mean") < valueOf(take.Parts[0], "mean"):
			take = r
		}
	}
	return Advice{Take: take.Policy, Loses: losses(take, rows), Gains: gains(take, rows)}
}

// Write writes a for people to read.
func (a Advice) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nTake %s.\n\nIt is better, or worse,\n", a.Take)
	for _, line := range a.Gains {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if a.Loses == nil {
		b.WriteString("\nIt loses nowhere.\n")
	} else {
		b.WriteString("\nIt loses here:\n")
	}
	for _, line := range a.Loses {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// least returns the rows whose figure is within limit of the lowest.
func least(rows []Row, figure string, limit func(float64) float64) []Row {
	low := math.Inf(1)
	for _, r := range rows {
		low = min(low, valueOf(r.Parts[0], figure))
	}
	most := limit(low)
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return valueOf(r.Parts[0], figure) > most })
}

func losses(take Row, rows []Row) []string {
	var all []string
	for _, figure := range advisable {
		mine := valueOf(take.Parts[0], figure)
		for _, r := range rows {
			v := valueOf(r.Parts[0], figure)
			if r.Policy == take.Policy || slices.Contains(oracles, r.Policy) || mine <= v*(1+Slack) || figure == "failed" && mine <= v+tolerated {
				continue
			}
			all = append(all, fmt.Sprintf("%s is %s, with %s %s", figure, number(mine), r.Policy, number(v)))
		}
	}
	return all
}

func gains(take Row, rows []Row) []string {
	var all []string
	for _, r := range rows {
		if r.Policy == take.Policy || slices.Contains(oracles, r.Policy) {
			continue
		}
		var parts []string
		for _, figure := range advisable[:3] {
			parts = append(parts, figure+" "+compared(valueOf(take.Parts[0], figure), valueOf(r.Parts[0], figure)))
		}
		all = append(all, fmt.Sprintf("than %s: %s", r.Policy, strings.Join(parts, ", ")))
	}
	return all
}

func compared(mine, other float64) string {
	switch {
	case mine == other:
		return "the same"
	case other == 0:
		return number(mine) + " in place of 0"
	}
	return fmt.Sprintf("%+.0f %%", (mine/other-1)*100)
}
