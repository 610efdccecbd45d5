// Compare runs the benchmarks of package bench and those of tower in turn, several rounds of them, and writes what
// came of it as a page.
//
//	compare [-rounds N] [-time D] [-tower PROGRAM] [-out FILE]
//	compare -smoke
//
// Each round runs each job once: peers, then belfry, then tower's program. So whatever slows the machine for a while
// slows all of them, and ratios are taken within a round. The page has the median of the rounds, and how far the middle
// half of them lies apart. With -smoke it counts allocations alone, and fails where there is one too many.
//
// It is run in the folder of package bench.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(args []string, progress io.Writer) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	rounds := flags.Int("rounds", 9, "how often everything runs")
	each := flags.Duration("time", 20*time.Millisecond, "how long each benchmark runs in a round")
	tower := flags.String("tower", "", "tower's program; none means that the page has no columns for it")
	out := flags.String("out", "../docs/benchmarks.md", "the page")
	smoke := flags.Bool("smoke", false, "count allocations, measure nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || *each < time.Millisecond || flags.NArg() > 0 {
		return errors.New("-rounds is at least 1, -time at least 1ms, and there are no arguments")
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := runner{binary: filepath.Join(dir, "bench.test"), tower: *tower, time: *each, progress: progress}
	if err := r.build(); err != nil {
		return err
	}
	if *smoke {
		return r.smoke()
	}
	return r.measure(*rounds, *out)
}

func (r *runner) measure(rounds int, out string) error {
	about := describe(r.tower)
	measured, err := r.rounds(rounds)
	if err != nil {
		return err
	}
	about.loadAfter = loadAverage()
	about.rounds, about.time = rounds, r.time
	if err := os.WriteFile(out, []byte(page(about, measured)), 0o644); err != nil {
		return err
	}
	if missing := unmeasured(measured, r.tower != ""); len(missing) > 0 {
		return fmt.Errorf("targets of benchmarks that nobody ran: %s", strings.Join(missing, "; "))
	}
	return nil
}

// unmeasured lists the targets for which there is no figure: a name in the list of targets is wrong, or there is no tower.
func unmeasured(rounds []round, withTower bool) (missing []string) {
	for _, t := range targets() {
		ofTower := strings.Contains(t.what, "tower")
		if across(rounds, t.figure).n == 0 && (withTower || !ofTower) {
			missing = append(missing, t.job+", "+t.what)
		}
	}
	return missing
}
