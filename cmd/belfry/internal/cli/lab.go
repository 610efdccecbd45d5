package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab"
	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

type labCommand struct {
	List   labListCommand   `cmd:"" help:"Print the scenarios and the policies."`
	Run    labRunCommand    `cmd:"" help:"Run one scenario and print its figures."`
	Report labReportCommand `cmd:"" help:"Run all scenarios and write a page with plots, and tables in Markdown. It takes a few minutes."`
	Replay labReplayCommand `cmd:"" help:"Say how other policies would have shared what a proxy has decided."`
	Advise labAdviseCommand `cmd:"" help:"Say which policy to take for a fleet of your own."`
}

func labVars() kong.Vars {
	return kong.Vars{
		"lab_scenarios": strings.Join(lab.Names(), ", "),
		"lab_policies":  sim.Accepted(),
		"lab_replays":   strings.Join(lab.ReplayPolicies, ", "),
		"lab_seeds":     fmt.Sprintf("1 to %d", maxSeeds),
	}
}

const maxSeeds = 1000

type labListCommand struct{}

// Run prints the list.
func (labListCommand) Run(p Process) error { return lab.WriteList(p.Stdout) }

type labRunCommand struct {
	Scenario string   `arg:"" help:"Which: ${lab_scenarios}. A name and a part of it, as in fleet-equal/10, is that part alone."`
	Fleet    string   `type:"path" placeholder:"FILE" help:"For your-own: the YAML file that describes the fleet. Without it an example is taken."`
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
	if c.Fleet != "" {
		if s.Name != lab.YourOwn {
			return lab.Plan{}, fmt.Errorf("--fleet: is for %s, got the scenario %s", lab.YourOwn, s.Name)
		}
		f, err := lab.LoadFleet(c.Fleet)
		if err != nil {
			return lab.Plan{}, err
		}
		s = f.Scenario()
	}
	plan := lab.Plan{Scenario: s, Policies: c.Policy, Seed: c.Seed, Seeds: c.Seeds}
	return plan, plan.Validate()
}

// Validate is asked by kong.
func (c labRunCommand) Validate() error {
	if err := validSeeds(c.Seeds); err != nil {
		return err
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

type labReportCommand struct {
	Page     string `default:"belfry-lab.html" placeholder:"FILE" help:"Where to write the page, which needs no network."`
	Markdown string `default:"belfry-lab.md" placeholder:"FILE" help:"Where to write the tables."`
}

// Run runs everything.
func (c labReportCommand) Run(p Process) error {
	report, err := lab.MakeReport(func(name string) { fmt.Fprintf(p.Stderr, "belfry lab: %s\n", name) })
	if err != nil {
		return err
	}
	if err := write(c.Page, report.WritePage); err != nil {
		return err
	}
	if err := write(c.Markdown, report.WriteMarkdown); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "Wrote %s and %s.\n", c.Page, c.Markdown)
	return err
}

// write writes a file, and tells also what closing it says.
func write(path string, what func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(what(file), file.Close())
}

type labReplayCommand struct {
	File   string   `arg:"" type:"path" help:"What /api/decisions of a proxy has answered."`
	Policy []string `placeholder:"NAME,..." help:"Which policies to replay it under. None means ${lab_replays}; belfry lab list prints all."`
	Seed   uint64   `default:"1" accept:"demo_seeds" help:"Determines everything."`
	Seeds  int      `default:"5" accept:"lab_seeds" help:"Take the means over so many seeds, from --seed on (${lab_seeds})."`
}

// Help is the long help.
func (labReplayCommand) Help() string {
	return `Replays the decisions that a proxy has kept, with decisions: N in its file, under other policies: how often each would have chosen the
same endpoint, how it would have shared the requests, and what they would have taken.

Requests come when they came. What an endpoint would have answered is not known where another was chosen, so all answers are drawn
from those that it gave, whenever that was: a replay does not know that it might have become slower with more requests, that it
was slow for a while only, or that it had a limit, a weight, a zone or requests with keys. An endpoint that answered nothing
takes what was expected of it. Policies begin without what the proxy knew before. So believe large differences, of many decisions.

Example:

  curl -s http://127.0.0.1:9900/api/decisions > saved.json
  belfry lab replay saved.json --policy in-flight,default,default/1s`
}

func (c labReplayCommand) replay() (lab.Replay, error) {
	r, err := lab.LoadRecording(c.File)
	if err != nil {
		return lab.Replay{}, err
	}
	plan := lab.Replay{Recording: r, Policies: c.Policy, Seed: c.Seed, Seeds: c.Seeds}
	return plan, plan.Validate()
}

// Validate is asked by kong.
func (c labReplayCommand) Validate() error {
	if err := validSeeds(c.Seeds); err != nil {
		return err
	}
	_, err := c.replay()
	return err
}

// Run replays the file.
func (c labReplayCommand) Run(p Process) error {
	plan, err := c.replay()
	if err != nil {
		return err
	}
	return lab.WriteReplay(p.Stdout, plan)
}

type labAdviseCommand struct {
	Fleet string `arg:"" type:"path" placeholder:"FLEET.yaml" help:"The file that describes the fleet."`
	Seed  uint64 `default:"1" accept:"demo_seeds" help:"Determines everything."`
	Seeds int    `default:"3" accept:"lab_seeds" help:"Take the means over so many seeds, from --seed on (${lab_seeds})."`
}

// Help is the long help.
func (labAdviseCommand) Help() string {
	return `Runs all policies on a fleet, and says which to take, by how much it is better than the others, and where it loses. Of those
that let the fewest requests fail (within 0.1 %), it is the one with the lowest p99; of those within 3 % of that, the default or the
lowest mean.

This is a fleet, with everything that a file may say:

` + indent(lab.ExampleFleet())
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// Validate is asked by kong.
func (c labAdviseCommand) Validate() error {
	if err := validSeeds(c.Seeds); err != nil {
		return err
	}
	_, err := lab.LoadFleet(c.Fleet)
	return err
}

func validSeeds(n int) error {
	if n < 1 || n > maxSeeds {
		return fmt.Errorf("--seeds: must be 1 to %d, got %d", maxSeeds, n)
	}
	return nil
}

// Run runs the fleet.
func (c labAdviseCommand) Run(p Process) error {
	f, err := lab.LoadFleet(c.Fleet)
	if err != nil {
		return err
	}
	plan := lab.Plan{Scenario: f.Scenario(), Seed: c.Seed, Seeds: c.Seeds}
	rows := lab.Run(plan)
	if err := lab.WriteTable(p.Stdout, plan, rows); err != nil {
		return err
	}
	return lab.Advise(rows).Write(p.Stdout)
}
