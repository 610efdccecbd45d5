package demo

import (
	"fmt"
	"time"
)

// What a run may be told, and what it does when told nothing.
const (
	DefaultDuration = 6 * time.Second
	MinDuration     = 100 * time.Millisecond
	MaxDuration     = 10 * time.Minute
	// AcceptedDurations says the range in words.
	AcceptedDurations = "100ms to 10m"

	DefaultRate = 1000
	MinRate     = 1
	MaxRate     = 10_000
	// AcceptedRates says the range in words.
	AcceptedRates = "1 to 10000 requests a second"
)

// Config says how much load each policy gets.
type Config struct {
	// Duration is how long requests are sent, to each policy.
	Duration time.Duration
	// Rate is how many requests a second are due on average.
	Rate int
	// Seed determines when requests are due and how long each server takes for each of them.
	Seed uint64
}

// Validate says which flag is out of its range, and the range.
func (c Config) Validate() error {
	if c.Duration < MinDuration || c.Duration > MaxDuration {
		return fmt.Errorf("--duration must be %s, got %v", AcceptedDurations, c.Duration)
	}
	if c.Rate < MinRate || c.Rate > MaxRate {
		return fmt.Errorf("--rate must be %s, got %d", AcceptedRates, c.Rate)
	}
	return nil
}
