package lab

import (
	"encoding/json"
	"io"
	"math"
)

// result is the form of --json.
type result struct {
	Scenario string      `json:"scenario"`
	Seed     uint64      `json:"seed"`
	Rows     []resultRow `json:"rows"`
}

type resultRow struct {
	Policy  string             `json:"policy"`
	Figures map[string]float64 `json:"figures"`
}

// WriteJSON writes rows as one indented object.
func WriteJSON(w io.Writer, plan Plan, rows []Row) error {
	r := result{Scenario: plan.Scenario.Name, Seed: plan.Seed, Rows: []resultRow{}}
	for _, row := range rows {
		figures := map[string]float64{}
		for i, part := range plan.Scenario.Parts {
			for _, f := range row.Parts[i].Figures {
				if v := f.Value; !math.IsNaN(v) && !math.IsInf(v, 0) { // JSON has no name for them
					figures[part.full(f.Name)] = v
				}
			}
		}
		r.Rows = append(r.Rows, resultRow{row.Policy, figures})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
