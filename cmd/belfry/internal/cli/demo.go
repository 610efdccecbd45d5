package cli

import (
	"fmt"
	"math"
	"time"

	"github.com/alecthomas/kong"

	"github.com/belfry-go/belfry/cmd/belfry/internal/demo"
)

type demoCommand struct {
	Scenario string        `default:"${demo_scenario}" accept:"demo_scenarios" help:"What is the matter with the servers (${demo_scenarios})."`
	Duration time.Duration `default:"${demo_duration}" accept:"demo_durations" help:"How long requests are sent to each policy (${demo_durations})."`
	Rate     *int          `accept:"demo_rates" placeholder:"N" help:"How many are due, on average (${demo_rates}; 1000 if not given, and 200 for one-stuck)."`
	Seed     uint64        `default:"1" accept:"demo_seeds" help:"Determines when requests are due, and how long each server takes for each of them."`
	JSON     bool          `name:"json" help:"Print the result as one JSON object on standard output; progress goes to standard error."`
}

func demoVars() kong.Vars {
	return kong.Vars{
		"demo_duration":  demo.DefaultDuration.String(),
		"demo_durations": demo.AcceptedDurations,
		"demo_scenario":  demo.DefaultScenario,
		"demo_scenarios": demo.AcceptedScenarios(),
		"demo_rates":     demo.AcceptedRates,
		"demo_seeds":     fmt.Sprintf("0 to %d", uint64(math.MaxUint64)),
	}
}

// Help is the long help.
func (demoCommand) Help() string {
	return `Starts ten or eleven HTTP servers on the loopback interface, and sends the same requests through the same stack four times. What
differs is how the balancer tells which of two servers is less busy: not at all (random), by requests in flight (inflight), by
latency and requests in flight (peakewma), or by latency as far as servers differ (expected, which is the default of package
balance).

Scenarios:

  spread      answers take up to 1, 5, 10, 10, 10, 100, 100, 100, 500, 1000 ms
  slow        one of eleven servers is ten times slower for half of the time
  hang        one of eleven servers answers nothing for half of the time
  fast-fail   one of ten servers fails everything at once
  cold-start  an eleventh server joins, and is five times slower at first
  one-stuck   one request to one of ten servers does not come back

Latency counts from when a request was due, so that what the load could not send in time is not hidden. Under what matters in a
scenario stands what belfry lab run demo/SCENARIO says of it in virtual time.

Exit codes: 0; 1 if a request failed that was not to; 2 for a bad flag; 130 after Ctrl-C, with what was measured until then.

Examples:

  belfry demo
  belfry demo --scenario hang
  belfry demo --rate 2000 --duration 10s
  belfry demo --json --seed 7 | jq '.policies[] | {name, p99_ms}'`
}

func (c demoCommand) config() demo.Config {
	return demo.Config{Scenario: c.Scenario, Duration: c.Duration, Rate: c.Rate, Seed: c.Seed}
}

// Validate is asked by kong.
func (c demoCommand) Validate() error { return c.config().Validate() }

// Run runs the demo.
func (c demoCommand) Run(p Process, code *int) error {
	*code = demo.Run(c.config(), demo.Output{Stdout: p.Stdout, Stderr: p.Stderr, JSON: c.JSON, Getenv: p.Getenv})
	return nil
}
