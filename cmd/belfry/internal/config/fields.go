package config

import (
	"net/netip"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

// A field is what a key means.
type field struct {
	accepted string
	set      func(cfg *proxy.Config, v value) error
	fields   map[string]field // of a mapping
	list     bool             // set is called for each value, in order
}

func fields() map[string]field {
	text := func(accepted string, at func(*proxy.Config) *string) field {
		return field{accepted: accepted, set: func(cfg *proxy.Config, v value) (err error) {
			*at(cfg), err = v.text()
			return err
		}}
	}
	number := func(accepted string, at func(*proxy.Config) *int) field {
		return field{accepted: accepted, set: func(cfg *proxy.Config, v value) (err error) {
			*at(cfg), err = v.integer()
			return err
		}}
	}
	bytes := func(accepted string, at func(*proxy.Config) *int64) field {
		return field{accepted: accepted, set: func(cfg *proxy.Config, v value) (err error) {
			*at(cfg), err = v.bytes()
			return err
		}}
	}
	duration := func(accepted string, at func(*proxy.Config) *time.Duration) field {
		return field{accepted: accepted, set: func(cfg *proxy.Config, v value) (err error) {
			*at(cfg), err = v.duration()
			return err
		}}
	}
	boolean := func(at func(*proxy.Config) *bool) field {
		return field{accepted: acceptedBool, set: func(cfg *proxy.Config, v value) (err error) {
			*at(cfg), err = v.boolean()
			return err
		}}
	}
	return map[string]field{
		"listen": text(proxy.AcceptedListen, func(c *proxy.Config) *string { return &c.Listen }),
		"admin": {accepted: proxy.AcceptedAdmin, set: func(cfg *proxy.Config, v value) (err error) {
			if v.is(off) {
				cfg.Admin = ""
				return nil
			}
			cfg.Admin, err = v.text()
			return err
		}},
		"tls": {fields: map[string]field{
			"cert": text(proxy.AcceptedFile, func(c *proxy.Config) *string { return &c.TLS.Cert }),
			"key":  text(proxy.AcceptedFile, func(c *proxy.Config) *string { return &c.TLS.Key }),
		}},
		"targets": {accepted: proxy.AcceptedTargets, list: true, set: func(cfg *proxy.Config, v value) error {
			target, err := v.target()
			cfg.Targets = append(cfg.Targets, target)
			return err
		}},
		"zone": text(proxy.AcceptedZone, func(c *proxy.Config) *string { return &c.Zone }),
		"sticky": {fields: map[string]field{
			"header": text(proxy.AcceptedSticky, func(c *proxy.Config) *string { return &c.Sticky.Header }),
			"cookie": text(proxy.AcceptedSticky, func(c *proxy.Config) *string { return &c.Sticky.Cookie }),
		}},
		"decisions":    number(proxy.AcceptedDecisions, func(c *proxy.Config) *int { return &c.Decisions }),
		"cost_bytes":   bytes(proxy.AcceptedCostBytes, func(c *proxy.Config) *int64 { return &c.CostBytes }),
		"warm":         number(proxy.AcceptedWarm, func(c *proxy.Config) *int { return &c.Warm }),
		"per_address":  number(proxy.AcceptedPerAddress, func(c *proxy.Config) *int { return &c.PerAddress }),
		"rotate_every": duration(proxy.AcceptedRotate, func(c *proxy.Config) *time.Duration { return &c.RotateEvery }),
		"target_tls": {fields: map[string]field{
			"ca":          text(proxy.AcceptedFile, func(c *proxy.Config) *string { return &c.TargetTLS.CA }),
			"server_name": text(proxy.AcceptedServerName, func(c *proxy.Config) *string { return &c.TargetTLS.ServerName }),
		}},
		"discovery_interval": duration(proxy.AcceptedInterval, func(c *proxy.Config) *time.Duration { return &c.DiscoveryInterval }),
		"subset": {fields: map[string]field{
			"size":     number(proxy.AcceptedPlaces, func(c *proxy.Config) *int { return &c.Subset.Size }),
			"identity": text(proxy.AcceptedIdentity, func(c *proxy.Config) *string { return &c.Subset.Identity }),
			"index":    number(proxy.AcceptedIndex, func(c *proxy.Config) *int { return &c.Subset.Index }),
			"count":    number(proxy.AcceptedRate, func(c *proxy.Config) *int { return &c.Subset.Count }),
		}},
		"load":       text(proxy.AcceptedLoad, func(c *proxy.Config) *string { return &c.Load }),
		"probe_path": text(proxy.AcceptedProbePath, func(c *proxy.Config) *string { return &c.ProbePath }),
		"health": {fields: map[string]field{
			"path":      text(proxy.AcceptedPath, func(c *proxy.Config) *string { return &c.Health.Path }),
			"interval":  duration(proxy.AcceptedInterval, func(c *proxy.Config) *time.Duration { return &c.Health.Interval }),
			"timeout":   duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Health.Timeout }),
			"unhealthy": number(proxy.AcceptedInARow, func(c *proxy.Config) *int { return &c.Health.Unhealthy }),
			"healthy":   number(proxy.AcceptedInARow, func(c *proxy.Config) *int { return &c.Health.Healthy }),
		}},
		"breaker": {fields: map[string]field{
			"consecutive": number(proxy.AcceptedConsecutive, func(c *proxy.Config) *int { return &c.Breaker.Consecutive }),
			"ratio": {accepted: proxy.AcceptedFailureRatio, set: func(cfg *proxy.Config, v value) (err error) {
				cfg.Breaker.Ratio, err = v.number()
				return err
			}},
			"window":    duration(proxy.AcceptedInterval, func(c *proxy.Config) *time.Duration { return &c.Breaker.Window }),
			"min_calls": number(proxy.AcceptedPlaces, func(c *proxy.Config) *int { return &c.Breaker.MinCalls }),
			"min_pause": duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Breaker.MinPause }),
			"max_pause": duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Breaker.MaxPause }),
		}},
		"outlier": {fields: map[string]field{
			"gap": {accepted: proxy.AcceptedFailureRatio, set: func(cfg *proxy.Config, v value) (err error) {
				cfg.Outlier.Gap, err = v.number()
				return err
			}},
			"latency": {accepted: proxy.AcceptedTimesMedian, set: func(cfg *proxy.Config, v value) (err error) {
				cfg.Outlier.Latency, err = v.number()
				return err
			}},
			"interval":  duration(proxy.AcceptedInterval, func(c *proxy.Config) *time.Duration { return &c.Outlier.Interval }),
			"min_calls": number(proxy.AcceptedPlaces, func(c *proxy.Config) *int { return &c.Outlier.MinCalls }),
			"min_pause": duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Outlier.MinPause }),
			"max_pause": duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Outlier.MaxPause }),
		}},
		"eject": {fields: map[string]field{
			"max_share": {accepted: proxy.AcceptedShare, set: func(cfg *proxy.Config, v value) (err error) {
				cfg.Eject.MaxShare, err = v.number()
				return err
			}},
			"keep":        number(proxy.AcceptedKeep, func(c *proxy.Config) *int { return &c.Eject.Keep }),
			"retry_after": duration(proxy.AcceptedDrain, func(c *proxy.Config) *time.Duration { return &c.Eject.RetryAfter }),
		}},
		"rate": {fields: map[string]field{
			"per_second": number(proxy.AcceptedRate, func(c *proxy.Config) *int { return &c.Rate.PerSecond }),
			"burst":      number(proxy.AcceptedRate, func(c *proxy.Config) *int { return &c.Rate.Burst }),
		}},
		"shed": boolean(func(c *proxy.Config) *bool { return &c.Shed }),
		"buffer": {fields: map[string]field{
			"size": number(proxy.AcceptedPlaces, func(c *proxy.Config) *int { return &c.Buffer }),
			"wait": duration(proxy.AcceptedBufferWait, func(c *proxy.Config) *time.Duration { return &c.BufferWait }),
		}},
		"limit": number(proxy.AcceptedPlaces, func(c *proxy.Config) *int { return &c.Limit }),
		"endpoint_limit": {accepted: proxy.AcceptedEndpoint, set: func(cfg *proxy.Config, v value) (err error) {
			if cfg.AdaptiveEndpoints = v.is(proxy.Adaptive); cfg.AdaptiveEndpoints {
				return nil
			}
			cfg.EndpointLimit, err = v.integer()
			return err
		}},
		"timeout": duration(proxy.AcceptedTimeout, func(c *proxy.Config) *time.Duration { return &c.Timeout }),
		"retry": {fields: map[string]field{
			"attempts":        number(proxy.AcceptedAttempts, func(c *proxy.Config) *int { return &c.Attempts }),
			"attempt_timeout": duration(proxy.AcceptedAttempt, func(c *proxy.Config) *time.Duration { return &c.AttemptTimeout }),
			"budget": {accepted: proxy.AcceptedRetryRatio, set: func(cfg *proxy.Config, v value) (err error) {
				cfg.RetryRatio, err = v.number()
				return err
			}},
			"body_cap": bytes(proxy.AcceptedReplay, func(c *proxy.Config) *int64 { return &c.ReplayBytes }),
		}},
		"hedge": {fields: map[string]field{
			"delay": {accepted: proxy.AcceptedHedgeDelay, set: func(cfg *proxy.Config, v value) (err error) {
				if cfg.Hedge.Delay, err = v.duration(); err == nil && cfg.Hedge.Delay == 0 {
					err = errKind // 0 means in the Config that there is none
				}
				return err
			}},
			"percentile": {accepted: proxy.AcceptedPercentile, set: func(cfg *proxy.Config, v value) (err error) {
				if cfg.Hedge.Percentile, err = v.number(); err == nil && cfg.Hedge.Percentile == 0 {
					err = errKind
				}
				return err
			}},
			"max": number(proxy.AcceptedAttempts, func(c *proxy.Config) *int { return &c.Hedge.Max }),
		}},
		"client": {fields: map[string]field{
			"header_timeout": duration(proxy.AcceptedClientTimes, func(c *proxy.Config) *time.Duration { return &c.Client.HeaderTimeout }),
			"idle_timeout":   duration(proxy.AcceptedClientTimes, func(c *proxy.Config) *time.Duration { return &c.Client.IdleTimeout }),
			"stall_timeout":  duration(proxy.AcceptedClientTimes, func(c *proxy.Config) *time.Duration { return &c.Client.StallTimeout }),
			"header_bytes":   bytes(proxy.AcceptedHeaderBytes, func(c *proxy.Config) *int64 { return &c.Client.HeaderBytes }),
		}},
		"trusted_forwarders": {accepted: proxy.AcceptedForwarders, list: true, set: func(cfg *proxy.Config, v value) error {
			text, err := v.text()
			if err != nil {
				return err
			}
			var all []netip.Prefix
			if all, err = proxy.ParseForwarders([]string{text}); err != nil {
				return errKind
			}
			cfg.TrustedForwarders = append(cfg.TrustedForwarders, all...)
			return nil
		}},
		"log_level":  text(proxy.AcceptedLogLevel, func(c *proxy.Config) *string { return &c.LogLevel }),
		"access_log": boolean(func(c *proxy.Config) *bool { return &c.AccessLog }),
		"drain": {fields: map[string]field{
			"delay":   duration(proxy.AcceptedDrain, func(c *proxy.Config) *time.Duration { return &c.DrainDelay }),
			"timeout": duration(proxy.AcceptedDrain, func(c *proxy.Config) *time.Duration { return &c.Drain }),
		}},
	}
}
