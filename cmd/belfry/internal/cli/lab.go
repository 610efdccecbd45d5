package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab"
	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

type labCommand struct {
	List labListCommand `cmd:"" help:"Print the scenarios and the policies."`
	Run  labRunCommand  `cmd:"" help:"Run one scenario and print its figures."`
}

func labVars() kong.Vars {
	return kong.Vars{
		"lab_scenarios": strings.Join(lab.Names(), ", "),
		"lab_policies":  sim.Accepted(),
		"lab_seeds":     fmt.Sprintf("1 to %d", maxSeeds),
	}
}

const maxSeeds = 1000

type labListCommand struct{}

// Run prints the list.
func (labListCommand) Run(p Process) error { return lab.WriteList(p.Stdout) }

type labRunCommand struct {
	Scenario string   `arg:"" help:"Which: ${lab_scenarios}. A name and a part of it, as in fleet-equal/10, is that part alone."`
	Policy   []string `placeholder:"NAME,..." help:"Which policies to compare. None means those of the scenario; belfry lab list prints all."`
	Seed     uint64   `default:"1" accept:"demo_seeds" help:"Determines everything."`
	Seeds    int      `default:"1" accept:"lab_seeds" help:"Take the means over so many seeds, from --seed on (${lab_seeds})."`
	JSON     bool     `name:"json" help:"Print one JSON object."`
}

// Help is the long help.
func (labRunCommand) Help() string {
	return `Sends the requests of a scenario through the code that chooses servers in belfry's balancer, and through what it is compared
with, in virtual time. A run is determined by its seed, whatever machine it runs on.

Examples:

  belfry lab run slow-middle
  belfry lab run fleet-equal/10 --policy in-flight,default,default/1s --seeds 3
  belfry lab run hang --json | jq '.rows[] | {policy, stuck: .figures.stuck}'`
}

func (c labRunCommand) plan() (lab.Plan, error) {
	s, err := lab.Find(c.Scenario)
	if err != nil {
		return lab.Plan{}, err
	}
	plan := lab.Plan{Scenario: s, Policies: c.Policy, Seed: c.Seed, Seeds: c.Seeds}
	return plan, plan.Validate()
}

// Validate is asked by kong.
func (c labRunCommand) Validate() error {
	if c.Seeds < 1 || c.Seeds > maxSeeds {
		return fmt.Errorf("--seeds: must be 1 to %d, got %d", maxSeeds, c.Seeds)
	}
	_, err := c.plan()
	return err
}

// Run runs the scenario.
func (c labRunCommand) Run(p Process) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	rows := lab.Run(plan)
	if c.JSON {
		return lab.WriteJSON(p.Stdout, plan, rows)
	}
	return lab.WriteTable(p.Stdout, plan, rows)
}
