package proxy

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// A Problem is a value that Validate does not accept.
type Problem struct {
	// Key is what it is called in a file, Flag on the command line; empty if it has no flag.
	Key, Flag string
	// Index is which of a list's values it is, -1 if it is about the whole.
	Index int
	// Text says what is accepted, and what it is.
	Text string
}

// Error calls the value by its flag, or by its key if it has none.
func (p *Problem) Error() string {
	if p.Flag == "" {
		return p.Key + " " + p.Text
	}
	return p.Flag + " " + p.Text
}

// Validate returns the first of Problems, nil if there is none.
func (c Config) Validate() error {
	if all := c.Problems(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// Problems says which values are not accepted. It looks at no file and asks no network.
func (c Config) Problems() []*Problem {
	v := &checks{}
	c.checkAddresses(v)
	c.checkTargets(v)
	c.checkBounds(v)
	c.checkTimes(v)
	return v.problems
}

// checks collects problems.
type checks struct{ problems []*Problem }

func (v *checks) add(key, flag string, index int, format string, args ...any) {
	v.problems = append(v.problems, &Problem{Key: key, Flag: flag, Index: index, Text: fmt.Sprintf(format, args...)})
}

// within notes a problem unless ok.
func (v *checks) within(key, flag string, ok bool, accepted string, got any) {
	if !ok {
		v.add(key, flag, -1, "must be %s, got %v", accepted, got)
	}
}

func (c Config) checkAddresses(v *checks) {
	v.within("listen", "--listen", isAddress(c.Listen), AcceptedListen, strconv.Quote(c.Listen))
	v.within("admin", "--admin", c.Admin == "" || isAddress(c.Admin), AcceptedAdmin, strconv.Quote(c.Admin))
	if c.Admin != "" && c.Admin == c.Listen && !hasPortZero(c.Listen) {
		v.add("admin", "--admin", -1, "must not be the address to listen on, %s", c.Listen)
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		v.add("tls", "", -1, "must have both cert and key, or neither")
	}
}

func isAddress(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func hasPortZero(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	return err == nil && port == "0"
}

func (c Config) checkTargets(v *checks) {
	v.within("zone", "", !strings.ContainsAny(c.Zone, " \t"), AcceptedZone, strconv.Quote(c.Zone))
	v.within("sticky", "", c.Sticky.Header == "" || c.Sticky.Cookie == "", AcceptedSticky, fmt.Sprintf("%+v", c.Sticky))
	v.within("decisions", "", c.Decisions >= 0 && c.Decisions <= maxDecisions, AcceptedDecisions, c.Decisions)
	v.within("cost_bytes", "", c.CostBytes >= 0, AcceptedCostBytes, c.CostBytes)
	targets, problem := parseTargets(c.Targets)
	if problem != nil {
		v.problems = append(v.problems, problem)
		return
	}
	for i, target := range targets {
		if isSelf(target, c.Listen) {
			v.add("targets", "--to", i, "must name other servers; %s is the proxy itself, which listens on %s", target, c.Listen)
		}
	}
}

func (c Config) checkBounds(v *checks) {
	for _, n := range []struct {
		key, flag string
		n         int
	}{{"buffer.size", "--buffer", c.Buffer}, {"limit", "--limit", c.Limit}, {"endpoint_limit", "--endpoint-limit", c.EndpointLimit}} {
		v.within(n.key, n.flag, n.n >= 1 && n.n <= maxPlaces, AcceptedPlaces, n.n)
	}
	c.Subset.check(v)
	v.within("rate.per_second", "", c.Rate.PerSecond >= 0 && c.Rate.PerSecond <= maxPlaces, AcceptedRate, c.Rate.PerSecond)
	if b := c.Rate.Burst; b > 0 && b <= maxPlaces && c.Rate.PerSecond == 0 {
		v.add("rate.burst", "", -1, "must not be there without per_second, got %d", b)
	} else {
		v.within("rate.burst", "", b >= 0 && b <= maxPlaces, AcceptedRate, b)
	}
	v.within("per_address", "", c.PerAddress >= 1 && c.PerAddress <= maxPerAddress, AcceptedPerAddress, c.PerAddress)
	if each := c.RotateEvery / time.Duration(max(c.PerAddress, 1)); c.RotateEvery != 0 {
		v.within("rotate_every", "", each >= time.Second && each <= 24*time.Hour, AcceptedRotate, c.RotateEvery)
	}
	v.within("warm", "", c.Warm >= 0 && c.Warm <= min(c.EndpointLimit, maxWarm), AcceptedWarm, c.Warm)
	v.within("retry.attempts", "--attempts", c.Attempts >= 1 && c.Attempts <= 10, AcceptedAttempts, c.Attempts)
	v.within("retry.budget", "--retry-ratio", c.RetryRatio >= 0 && c.RetryRatio <= 1, AcceptedRetryRatio, c.RetryRatio) // NaN neither
	v.within("retry.body_cap", "--replay-bytes", c.ReplayBytes >= 0 && c.ReplayBytes <= maxReplay, AcceptedReplay, c.ReplayBytes)
	v.within("hedge.max", "", c.Hedge.Max >= 1 && c.Hedge.Max <= 10, AcceptedAttempts, c.Hedge.Max)
	if p := c.Hedge.Percentile; p != 0 {
		v.within("hedge.percentile", "", p >= 0.01 && p <= 0.999, AcceptedPercentile, p) // NaN neither
	}
	v.within("load", "", loadNames[c.Load] != "", AcceptedLoad, strconv.Quote(c.Load))
	_, err := probeURL(c.ProbePath)
	v.within("probe_path", "", err == nil && !strings.ContainsAny(c.ProbePath, "?%"), AcceptedProbePath, strconv.Quote(c.ProbePath))
	_, ok := logLevels[c.LogLevel]
	v.within("log_level", "--log-level", ok, AcceptedLogLevel, strconv.Quote(c.LogLevel))
	v.within("client.header_bytes", "", c.Client.HeaderBytes >= minHeader && c.Client.HeaderBytes <= maxHeader, AcceptedHeaderBytes, c.Client.HeaderBytes)
	if c.Health.Path != "" {
		_, err := probeURL(c.Health.Path)
		v.within("health.path", "", err == nil, AcceptedPath, strconv.Quote(c.Health.Path))
	}
	v.within("health.unhealthy", "", c.Health.Unhealthy >= 1 && c.Health.Unhealthy <= 100, AcceptedInARow, c.Health.Unhealthy)
	v.within("breaker.consecutive", "", c.Breaker.Consecutive >= 0 && c.Breaker.Consecutive <= 1000, AcceptedConsecutive, c.Breaker.Consecutive)
	v.within("breaker.ratio", "", c.Breaker.Ratio >= 0 && c.Breaker.Ratio <= 1, AcceptedFailureRatio, c.Breaker.Ratio) // NaN neither
	v.within("breaker.min_calls", "", c.Breaker.MinCalls >= 1 && c.Breaker.MinCalls <= maxPlaces, AcceptedPlaces, c.Breaker.MinCalls)
	v.within("outlier.gap", "", c.Outlier.Gap >= 0 && c.Outlier.Gap <= 1, AcceptedFailureRatio, c.Outlier.Gap) // NaN neither
	l := c.Outlier.Latency
	v.within("outlier.latency", "", l == 0 || l >= 1 && l <= 100, AcceptedTimesMedian, l)
	v.within("outlier.min_calls", "", c.Outlier.MinCalls >= 1 && c.Outlier.MinCalls <= maxPlaces, AcceptedPlaces, c.Outlier.MinCalls)
	v.within("eject.max_share", "", c.Eject.MaxShare >= 0.001 && c.Eject.MaxShare <= 1, AcceptedShare, c.Eject.MaxShare)
	v.within("eject.keep", "", c.Eject.Keep >= 0 && c.Eject.Keep <= maxPlaces, AcceptedKeep, c.Eject.Keep)
	v.within("health.healthy", "", c.Health.Healthy >= 1 && c.Health.Healthy <= 100, AcceptedInARow, c.Health.Healthy)
}

func (s Subset) check(v *checks) {
	if s == (Subset{}) {
		return
	}
	v.within("subset.count", "", s.Count >= 0 && s.Count <= maxPlaces, AcceptedRate, s.Count)
	if s.Size == 0 {
		v.add("subset", "", -1, "must have a size of %s", AcceptedPlaces)
		return
	}
	v.within("subset.size", "", s.Size >= 1 && s.Size <= maxPlaces, AcceptedPlaces, s.Size)
	switch {
	case s.Count > 0 && s.Identity != "":
		v.add("subset.identity", "", -1, "must not be there with a count, got %q", s.Identity)
	case s.Count == 0 && s.Index != 0:
		v.add("subset.index", "", -1, "must not be there without a count, got %d", s.Index)
	case s.Count > 0:
		v.within("subset.index", "", s.Index >= 0 && s.Index < s.Count, AcceptedIndex, s.Index)
	case s.Count == 0 && s.Identity == "":
		v.add("subset", "", -1, "must have an identity, or index and count")
	}
}

func (c Config) checkTimes(v *checks) {
	for _, t := range []struct {
		key, flag      string
		d, least, most time.Duration
		accepted       string
	}{
		{"buffer.wait", "--buffer-wait", c.BufferWait, time.Millisecond, 10 * time.Minute, AcceptedBufferWait},
		{"timeout", "--timeout", c.Timeout, time.Millisecond, time.Hour, AcceptedTimeout},
		{"drain.delay", "", c.DrainDelay, 0, time.Hour, AcceptedDrain},
		{"drain.timeout", "--drain", c.Drain, 0, time.Hour, AcceptedDrain},
		{"health.interval", "", c.Health.Interval, 100 * time.Millisecond, time.Hour, AcceptedInterval},
		{"health.timeout", "", c.Health.Timeout, time.Millisecond, time.Hour, AcceptedTimeout},
		{"breaker.window", "", c.Breaker.Window, 100 * time.Millisecond, time.Hour, AcceptedInterval},
		{"breaker.min_pause", "", c.Breaker.MinPause, time.Millisecond, time.Hour, AcceptedTimeout},
		{"breaker.max_pause", "", c.Breaker.MaxPause, time.Millisecond, time.Hour, AcceptedTimeout},
		{"outlier.interval", "", c.Outlier.Interval, 100 * time.Millisecond, time.Hour, AcceptedInterval},
		{"outlier.min_pause", "", c.Outlier.MinPause, time.Millisecond, time.Hour, AcceptedTimeout},
		{"outlier.max_pause", "", c.Outlier.MaxPause, time.Millisecond, time.Hour, AcceptedTimeout},
		{"eject.retry_after", "", c.Eject.RetryAfter, 0, time.Hour, AcceptedDrain},
		{"client.header_timeout", "", c.Client.HeaderTimeout, 10 * time.Millisecond, time.Hour, AcceptedClientTimes},
		{"client.idle_timeout", "", c.Client.IdleTimeout, 10 * time.Millisecond, time.Hour, AcceptedClientTimes},
		{"client.stall_timeout", "", c.Client.StallTimeout, 10 * time.Millisecond, time.Hour, AcceptedClientTimes},
	} {
		v.within(t.key, t.flag, t.d >= t.least && t.d <= t.most, t.accepted, t.d)
	}
	if d := c.AttemptTimeout; d != 0 {
		v.within("retry.attempt_timeout", "", d >= time.Millisecond && d <= time.Hour, AcceptedAttempt, d)
	}
	if b := c.Breaker; b.MaxPause < b.MinPause {
		v.add("breaker.max_pause", "", -1, "must not be below min_pause, %v, got %v", b.MinPause, b.MaxPause)
	}
	if o := c.Outlier; o.MaxPause < o.MinPause {
		v.add("outlier.max_pause", "", -1, "must not be below min_pause, %v, got %v", o.MinPause, o.MaxPause)
	}
	if d := c.Hedge.Delay; d != 0 {
		v.within("hedge.delay", "", d >= time.Millisecond && d <= time.Hour, AcceptedHedgeDelay, d)
		if c.Hedge.Percentile != 0 {
			v.add("hedge.percentile", "", -1, "must not be there with a delay, got %v and %v", c.Hedge.Percentile, d)
		}
	}
	if d := c.DiscoveryInterval; d != 0 {
		v.within("discovery_interval", "", d >= 100*time.Millisecond && d <= time.Hour, AcceptedInterval, d)
	}
}
