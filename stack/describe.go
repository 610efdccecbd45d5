package stack

import (
	"fmt"
	"strings"
	"time"

	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/timeout"
)

// How layers read in String: the number that matters first, then what is not the default.

func describeBuffer(bound int, cfg buffer.Config) string {
	words := []string{fmt.Sprint(bound), cfg.Order.String()}
	if cfg.MaxWait > 0 {
		words = append(words, "max wait "+cfg.MaxWait.String())
	}
	return strings.Join(words, ", ")
}

func describeTimeout(d time.Duration, cfg timeout.Config) string {
	words := []string{d.String()}
	if cfg.Wait {
		words = append(words, "with wait")
	}
	if cfg.Stream {
		words = append(words, "with stream")
	}
	return strings.Join(words, ", ")
}

func describeRetry(cfg retry.Config) string {
	attempts := cfg.MaxAttempts
	if attempts == 0 {
		attempts = retry.DefaultMaxAttempts
	}
	return fmt.Sprintf("%d attempts", attempts)
}
