package outlier

import (
	"math"
	"slices"
)

// A sample is what one endpoint did in an interval.
type sample struct {
	calls, failures uint64
	latency         float64 // the median of its successes, in any unit; 0 if there were too few
}

func (s sample) success() float64 { return 1 - float64(s.failures)/float64(s.calls) }

// norms are what is usual among samples.
type norms struct {
	peers              int
	success, successBy float64 // the median, and the robust deviation
	latency, latencyBy float64
}

// robust makes a median absolute deviation a standard deviation, where values are normal.
const robust = 1.4826

// normsOf returns what is usual among those that had enough calls.
func (c *Config) normsOf(all []sample) (n norms) {
	var successes, latencies []float64
	for _, s := range all {
		if s.calls < uint64(c.MinCalls) {
			continue
		}
		n.peers++
		successes = append(successes, s.success())
		if s.latency > 0 {
			latencies = append(latencies, s.latency)
		}
	}
	n.success, n.successBy = spread(successes)
	if len(latencies) >= c.MinEndpoints {
		n.latency, n.latencyBy = spread(latencies)
	}
	return n
}

// spread returns the median and the robust deviation of values, which it sorts.
func spread(values []float64) (median, deviation float64) {
	median = middle(values)
	for i, v := range values {
		values[i] = math.Abs(v - median)
	}
	return median, robust * middle(values)
}

func middle(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// judge returns how far s is out, in times of what is allowed: above 1 it is an outlier. The second says that it is for its latency.
func (c *Config) judge(n norms, s sample) (excess float64, slow bool) {
	if n.peers < c.MinEndpoints || s.calls < uint64(c.MinCalls) {
		return 0, false
	}
	if !c.IgnoreFailures {
		excess = (n.success - s.success()) / c.allowed(n, s)
	}
	if c.Latency > 0 && n.latency > 0 && s.latency > 0 {
		limit := max(c.Latency*n.latency, n.latency+c.Deviations*n.latencyBy)
		if e := s.latency / limit; e > 1 && e > excess {
			return e, true
		}
	}
	return excess, false
}

// allowed is how far below the median a share of successes may be: the deviation among peers, or what chance does with so few calls, whichever is
// more. One success and one failure are added, for where nobody ever fails chance would be nothing.
func (c *Config) allowed(n norms, s sample) float64 {
	calls := float64(s.calls)
	p := (n.success*calls + 1) / (calls + 2)
	return max(c.Gap, c.Deviations*n.successBy, c.Deviations*math.Sqrt(p*(1-p)/calls))
}
