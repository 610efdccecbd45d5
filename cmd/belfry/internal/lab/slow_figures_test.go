//go:build !race

package lab

import "testing"

// The race detector has nothing to find in a simulation, and makes it ten times slower: so these are not built under it, and
// scripts/test-figures runs them without.

func TestFiguresAreAsPublished(t *testing.T) {
	agree(t, ReportSeeds, func(Published) bool { return true })
}

func TestFiguresBoundsAreHeld(t *testing.T) { hold(t, nil) }
