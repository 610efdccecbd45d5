package lab

import (
	"fmt"
	"io"
	"strings"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// WriteList writes what there is to run, for people to read.
func WriteList(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Scenarios\n")
	for _, s := range Scenarios() {
		fmt.Fprintf(&b, "  %-22s %s\n", s.Name, s.About)
		if len(s.Parts) > 1 {
			var parts []string
			for _, p := range s.Parts {
				parts = append(parts, s.Name+"/"+p.Name)
			}
			fmt.Fprintf(&b, "  %-22s   %s\n", "", strings.Join(parts, ", "))
		}
	}
	b.WriteString("\nPolicies\n")
	for _, p := range sim.Policies() {
		fmt.Fprintf(&b, "  %-22s %s\n", p.Name, p.About)
	}
	fmt.Fprintf(&b, "\nA decay other than %v is written after a slash, as in default/1s.\n", sim.DefaultDecay)
	_, err := io.WriteString(w, b.String())
	return err
}
