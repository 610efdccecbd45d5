//go:build !race

package lab

import "testing"

// The race detector has nothing to find in a simulation, and makes it ten times slower: so these are not built under it, and
// scripts/test-figures runs them without.

func TestFiguresAreAsPublished(t *testing.T) {
	agree(t, ReportSeeds, func(Published) bool { return true })
}

func TestFiguresBoundsAreHeld(t *testing.T) { hold(t, nil) }

func TestFiguresInTheCommittedTableAreCurrent(t *testing.T) {
	current(t, "slow-middle", "tower-76", "fast-fail", "one-stuck", "cold-start", "flapping", "rolling-restart", "flicker", "retry-after", "outage", "your-own", "fleet-half")
}
