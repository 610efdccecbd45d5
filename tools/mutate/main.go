// Command mutate breaks lines of belfry's logic, one at a time, and says which breaks the tests notice.
//
//	mutate [flags]
//
// It parses the packages named by -packages, finds the lines that it knows how to break, and takes some by chance, from -seed. Each
// is broken in a copy: go test's -overlay puts it in the file's place, and the work tree is not touched. First the package's own
// tests run in their short form; only if they notice nothing, they and the state machines in full, and then the tests of the packages
// that import it.
//
// A mutant is noticed if a test fails, panics or takes longer than -timeout. One that does not build does not count, and the next
// line takes its place. One that survives is either a missing test, or equivalent: it does the same as what it was made from. What
// is known to be equivalent stands in -equivalent, each with the reason, and is reported as such. Any other makes the exit status 1.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// packages are those with logic of layers. "." is the core's root.
const packages = ". timeout retry limit buffer shed hedge filter steer reconnect pool breaker budget balance load discover health" +
	" internal/pick internal/queue internal/attempt internal/backoff internal/gcra internal/window internal/gradient"

type config struct {
	root       string
	packages   []string
	seed       uint64
	lines      int
	workers    int
	timeout    time.Duration
	equivalent string
	list       bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, flags(), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func flags() config {
	var cfg config
	var pkgs string
	flag.StringVar(&cfg.root, "root", ".", "the core module's directory")
	flag.StringVar(&pkgs, "packages", packages, "whose lines may be broken, relative to root")
	flag.Uint64Var(&cfg.seed, "seed", 1, "which lines are")
	flag.IntVar(&cfg.lines, "lines", 30, "how many")
	flag.IntVar(&cfg.workers, "workers", 2, "how many at a time")
	flag.DurationVar(&cfg.timeout, "timeout", time.Minute, "how long the tests of one package may take")
	flag.StringVar(&cfg.equivalent, "equivalent", "docs/mutation.md", "the file that lists the equivalent ones, relative to root")
	flag.BoolVar(&cfg.list, "list", false, "only print what would be tried")
	flag.Parse()
	cfg.packages = strings.Fields(pkgs)
	return cfg
}

// run reports whether all mutants were noticed, or are known to be equivalent.
func run(ctx context.Context, cfg config, out io.Writer) (bool, error) {
	root, err := filepath.Abs(cfg.root)
	if err != nil {
		return false, err
	}
	cfg.root = root
	known, err := readEquivalent(filepath.Join(root, cfg.equivalent))
	if err != nil {
		return false, err
	}
	lines, err := collect(root, cfg.packages)
	if err != nil {
		return false, err
	}
	picked := pick(lines, rand.New(rand.NewPCG(cfg.seed, 0)))
	fmt.Fprintf(out, "seed %d: %d of %d lines, %d at a time\n", cfg.seed, cfg.lines, len(lines), cfg.workers)
	if cfg.list {
		for _, m := range picked[:min(cfg.lines, len(picked))] {
			fmt.Fprint(out, m, "\n", m.diff())
		}
		return true, nil
	}
	limitMemory()
	s, err := newSuites(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer s.close()
	return report(ctx, s, picked, known, cfg, out)
}

// report tries mutants in the order picked until enough of them were built, and prints what became of each.
func report(ctx context.Context, s *suites, picked []mutant, known equivalents, cfg config, out io.Writer) (bool, error) {
	began := time.Now()
	var count [verdicts]int
	for left := cfg.lines; left > 0 && len(picked) > 0; left = cfg.lines - (count[noticed] + count[survived] + count[equivalent]) {
		wave := picked[:min(left, len(picked))]
		picked = picked[len(wave):]
		for m, v := range s.tryAll(ctx, wave) {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			why := v.how
			if v.verdict == survived {
				if reason, ok := known[m.key()]; ok {
					v.verdict, why = equivalent, reason
				}
			}
			count[v.verdict]++
			fmt.Fprintf(out, "%-14s %v (%s)\n", v.verdict, m, why)
			if v.verdict == survived {
				fmt.Fprint(out, m.diff())
			}
		}
	}
	fmt.Fprintf(out, "seed %d: %d noticed, %d survived, %d equivalent; %d more did not build; %v\n", cfg.seed,
		count[noticed], count[survived], count[equivalent], count[unbuilt], time.Since(began).Round(time.Second))
	return count[survived] == 0, nil
}

// limitMemory keeps a mutant that allocates in a loop from taking the machine with it. Children inherit it.
func limitMemory() {
	if runtime.GOOS == "linux" {
		const most = 6 << 30
		_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: most, Max: most})
	}
}
