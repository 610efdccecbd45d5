package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab"
)

// What a run may be told, and what it does when told nothing.
const (
	DefaultDuration = lab.DemoRun
	MinDuration     = 100 * time.Millisecond
	MaxDuration     = 10 * time.Minute
	// AcceptedDurations says the range in words.
	AcceptedDurations = "100ms to 10m"

	MinRate = 1
	MaxRate = 10_000
	// AcceptedRates says the range in words.
	AcceptedRates = "1 to 10000 requests a second"

	DefaultScenario = lab.DefaultDemo
)

// AcceptedScenarios names them all.
func AcceptedScenarios() string { return strings.Join(lab.DemoNames(), ", ") }

// Config says what is run, and how much load each policy gets.
type Config struct {
	// Scenario says what is the matter with the servers.
	Scenario string
	// Duration is how long requests are sent, to each policy.
	Duration time.Duration
	// Rate is how many requests a second are due on average. Nil means what the scenario has.
	Rate *int
	// Seed determines when requests are due and how long each server takes for each of them.
	Seed uint64
}

// Validate says which flag is out of its range, and the range.
func (c Config) Validate() error {
	if c.Duration < MinDuration || c.Duration > MaxDuration {
		return fmt.Errorf("--duration must be %s, got %v", AcceptedDurations, c.Duration)
	}
	if c.Rate != nil && (*c.Rate < MinRate || *c.Rate > MaxRate) {
		return fmt.Errorf("--rate must be %s, got %d", AcceptedRates, *c.Rate)
	}
	if _, err := lab.FindDemo(c.Scenario, c.Duration); err != nil {
		return fmt.Errorf("--scenario %w", err)
	}
	return nil
}

// A plan is what a valid Config comes to.
type plan struct {
	lab.Demo
	seed uint64
}

func (c Config) plan() (plan, error) {
	d, err := lab.FindDemo(c.Scenario, c.Duration)
	if err != nil {
		return plan{}, fmt.Errorf("--scenario %w", err)
	}
	if c.Rate != nil {
		d.Rate = *c.Rate
	}
	return plan{d, c.Seed}, nil
}
