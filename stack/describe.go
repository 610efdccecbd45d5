package stack

import (
	"fmt"
	"strings"
	"time"

	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/hedge"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/timeout"
)

// How layers read in String: the number that matters first, then what is not the default.

func describeBuffer(bound int, cfg buffer.Config) string {
	words := []string{fmt.Sprint(bound), cfg.Order.String()}
	if cfg.Order == buffer.CoDel {
		words = appendUnlessZero(words, "target", cfg.Target)
		words = appendUnlessZero(words, "interval", cfg.Interval)
	}
	words = appendUnlessZero(words, "max wait", cfg.MaxWait)
	return strings.Join(words, ", ")
}

func describeLimiter(l *limit.Limiter) string { return fmt.Sprintf("%d, shared", l.Stats().Limit) }

func describeAdaptive(cfg limit.AdaptiveConfig) string {
	words := appendUnlessZero(nil, "initial", cfg.Initial)
	words = appendUnlessZero(words, "min", cfg.Min)
	words = appendUnlessZero(words, "max", cfg.Max)
	words = appendUnlessZero(words, "window", cfg.Window)
	return strings.Join(words, ", ")
}

func describeRate(n int, per time.Duration, cfg limit.RateConfig) string {
	words := []string{fmt.Sprintf("%d per %v", n, per)}
	words = appendUnlessZero(words, "burst", cfg.Burst)
	return strings.Join(words, ", ")
}

func describeKeyed(n int, per time.Duration, cfg limit.KeyedConfig) string {
	words := []string{describeRate(n, per, limit.RateConfig{Burst: cfg.Burst})}
	words = appendUnlessZero(words, "max keys", cfg.MaxKeys)
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
	words := []string{fmt.Sprintf("%d attempts", attempts)}
	words = appendUnlessZero(words, "min pause", cfg.Backoff.Min)
	words = appendUnlessZero(words, "max pause", cfg.Backoff.Max)
	words = appendUnlessZero(words, "jitter", cfg.Backoff.Jitter)
	words = appendUnlessZero(words, "max retry-after", cfg.MaxRetryAfter)
	if cfg.Budget != nil {
		words = append(words, "own budget")
	}
	return strings.Join(words, ", ")
}

func describeBreaker(cfg breaker.Config) string {
	var words []string
	if n := cfg.Consecutive; n > 0 || cfg.Ratio == 0 {
		if n == 0 {
			n = breaker.DefaultConsecutive
		}
		words = append(words, fmt.Sprintf("%d failures in a row", n))
	}
	words = appendUnlessZero(words, "ratio", cfg.Ratio)
	words = appendUnlessZero(words, "window", cfg.Window)
	words = appendUnlessZero(words, "min calls", cfg.MinCalls)
	words = appendUnlessZero(words, "min pause", cfg.MinBackoff)
	words = appendUnlessZero(words, "max pause", cfg.MaxBackoff)
	words = appendUnlessZero(words, "jitter", cfg.Jitter)
	words = appendUnlessZero(words, "max retry-after", cfg.MaxRetryAfter)
	words = appendUnlessZero(words, "probe timeout", cfg.ProbeTimeout)
	if cfg.Wait {
		words = append(words, "with wait")
	}
	return strings.Join(words, ", ")
}

func describeHedge(cfg hedge.Config) string {
	words := []string{fmt.Sprint("after ", cfg.Delay)}
	if cfg.Delay == 0 {
		percentile := cfg.Percentile
		if percentile == 0 {
			percentile = hedge.DefaultPercentile
		}
		words = []string{fmt.Sprintf("after percentile %g", percentile)}
		words = appendUnlessZero(words, "min samples", cfg.MinSamples)
		words = appendUnlessZero(words, "period", cfg.Period)
	}
	words = appendUnlessZero(words, "max hedges", cfg.MaxHedges)
	if cfg.WaitLosers {
		words = append(words, "waits for losers")
	}
	if cfg.Detach {
		words = append(words, "detached")
	}
	if cfg.Budget != nil {
		words = append(words, "own budget")
	}
	return strings.Join(words, ", ")
}

// appendUnlessZero adds a setting that is not the default, which is what zero means.
func appendUnlessZero[T comparable](words []string, name string, value T) []string {
	var zero T
	if value == zero {
		return words
	}
	return append(words, fmt.Sprint(name, " ", value))
}
