// Package lab compares ways to choose a server in virtual time, on scenarios whose figures others have published or that follow
// from theory. What chooses is the code that balancers run; what it is compared with lives in package sim.
//
// All figures are determined by the scenario, the policy and the seed.
package lab

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// A Scenario is one or more set-ups, its parts, that belong together.
type Scenario struct {
	Name  string
	About string
	// Unit is that of latencies, Scale how many µs it is.
	Unit     string
	Policies []string // those that are compared unless others are asked for
	Parts    []Part

	// Judged is the figure by which policies are compared, none if that says nothing about the default. Less is better, or more if
	// Higher; Missing says that what matters is how much is missing to 1.
	Judged  string
	Higher  bool
	Missing bool
}

// A Part is one set-up of a scenario.
type Part struct {
	// Name comes before the names of its figures. The only part of a scenario has none.
	Name string
	// run simulates it.
	run func(sim.Policy, uint64) Outcome
	// slow says that it takes too long for a test that is run often.
	slow bool
}

// An Outcome is what one run of a part gave.
type Outcome struct {
	Figures []Figure
	// Curve is latencies at the quantiles of CurveAt, in the scenario's unit, if there are any.
	Curve []float64
}

// A Figure is a number with its name.
type Figure struct {
	Name  string
	Value float64
}

// CurveAt are the quantiles of an [Outcome]'s Curve.
var CurveAt = []float64{0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999}

// A Row is what one policy did in a scenario: means over the seeds.
type Row struct {
	Policy string
	Parts  []Outcome
}

// Plan says what to run.
type Plan struct {
	Scenario Scenario
	Policies []string // nil: the scenario's
	Seed     uint64
	Seeds    int
}

// Find returns the scenario called name. A name with a slash is one of its parts alone.
func Find(name string) (Scenario, error) {
	plain, part, one := strings.Cut(name, "/")
	for _, s := range Scenarios() {
		if s.Name != plain {
			continue
		}
		if !one {
			return s, nil
		}
		return s.only(part)
	}
	return Scenario{}, fmt.Errorf("scenario %q is not known; accepted: %s", name, strings.Join(Names(), ", "))
}

func (s Scenario) only(part string) (Scenario, error) {
	var names []string
	for _, p := range s.Parts {
		if p.Name == part && part != "" {
			s.Parts = []Part{p}
			s.Name += "/" + part
			return s, nil
		}
		if p.Name != "" {
			names = append(names, s.Name+"/"+p.Name)
		}
	}
	if names == nil {
		return Scenario{}, fmt.Errorf("scenario %q has no parts; accepted: %s", s.Name, s.Name)
	}
	return Scenario{}, fmt.Errorf("scenario %q has no part %q; accepted: %s", s.Name, part, strings.Join(names, ", "))
}

// Names returns the names of all scenarios.
func Names() []string {
	var names []string
	for _, s := range Scenarios() {
		names = append(names, s.Name)
	}
	return names
}

// Validate says which policy is not known.
func (p Plan) Validate() error {
	for _, name := range p.Policies {
		if _, err := p.Scenario.policy(name); err != nil {
			return err
		}
	}
	return nil
}

// policy finds a policy for the scenario, which may have some of its own.
func (s Scenario) policy(name string) (sim.Policy, error) {
	if s.ownPolicies() {
		if slices.Contains(s.Policies, name) {
			return sim.Policy{Name: name}, nil
		}
		return sim.Policy{}, fmt.Errorf("policy %q is not one of %s; accepted: %s", name, s.Name, strings.Join(s.Policies, ", "))
	}
	return sim.Find(name)
}

// ownPolicies reports whether the scenario compares something else than ways to choose a server.
func (s Scenario) ownPolicies() bool {
	_, err := sim.Find(s.Policies[0])
	return err != nil
}

// Run runs the plan, which is valid, on all processors.
func Run(plan Plan) []Row {
	if plan.Policies == nil {
		plan.Policies = plan.Scenario.Policies
	}
	seeds, parts := max(plan.Seeds, 1), plan.Scenario.Parts
	rows := make([]Row, len(plan.Policies))
	jobs := make(chan func())
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for job := range jobs {
				job()
			}
		})
	}
	outcomes := make([]Outcome, len(rows)*len(parts)*seeds)
	for i, name := range plan.Policies {
		policy, _ := plan.Scenario.policy(name)
		for j, part := range parts {
			for k := range seeds {
				to := &outcomes[(i*len(parts)+j)*seeds+k]
				jobs <- func() { *to = part.run(policy, plan.Seed+uint64(k)) }
			}
		}
	}
	close(jobs)
	workers.Wait()
	for i, name := range plan.Policies {
		rows[i].Policy = name
		for j := range parts {
			at := (i*len(parts) + j) * seeds
			rows[i].Parts = append(rows[i].Parts, mean(outcomes[at:at+seeds]))
		}
	}
	return rows
}

// mean returns the mean of what several seeds gave.
func mean(all []Outcome) Outcome {
	var m Outcome
	for _, o := range all {
		if m.Figures == nil {
			m.Figures = make([]Figure, len(o.Figures))
		}
		for i, f := range o.Figures {
			m.Figures[i].Name = f.Name
			m.Figures[i].Value += f.Value / float64(len(all))
		}
		if m.Curve == nil && o.Curve != nil {
			m.Curve = make([]float64, len(o.Curve))
		}
		for i, v := range o.Curve {
			m.Curve[i] += v / float64(len(all))
		}
	}
	return m
}

// Figure returns the figure called name, which has the part's name before it and a dot, if the part has one.
func (r Row) Figure(s Scenario, name string) (float64, bool) {
	for i, part := range s.Parts {
		for _, f := range r.Parts[i].Figures {
			if part.full(f.Name) == name {
				return f.Value, true
			}
		}
	}
	return 0, false
}

func (p Part) full(figure string) string {
	if p.Name == "" {
		return figure
	}
	return p.Name + "." + figure
}
