package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
	"github.com/belfry-go/belfry/eject"
)

// A Status is the whole in a word.
type Status string

// What the whole may be.
const (
	Serving   Status = "serving"
	Degraded  Status = "degraded"  // requests are served, and something is wrong
	Rejecting Status = "rejecting" // more comes than there is room for
	Down      Status = "down"      // no endpoint can be used
	Empty     Status = "no endpoint"
	Draining  Status = "draining"
)

// severity is all of them from good to bad, and last what matters more than either.
var severity = []Status{Serving, Degraded, Rejecting, Down, Empty, Draining}

// A Condition is the state of an endpoint as an operator calls it: the balancer's, or what probes and answers say about it.
type Condition string

// From good to bad, and draining, which is neither.
const (
	Ready      Condition = "ready"
	NotReady   Condition = "not ready"   // no room when last asked
	Failing    Condition = "failing"     // asked when it has room; most of the latest attempts failed
	Dialling   Condition = "dialling"    // no service yet
	BackingOff Condition = "backing off" // not asked for a while
	Unhealthy  Condition = "unhealthy"   // its probes fail, so it is not asked, unless too many are left alone
	Tripped    Condition = "tripped"     // not asked, because its breaker is not closed
	Ejected    Condition = "ejected"     // not asked, because it does worse than its peers, or has asked for it
	Closed     Condition = "closed"
	Removed    Condition = "draining" // removed, with requests in flight
)

// conditions is all of them.
var conditions = []Condition{Ready, NotReady, Failing, Dialling, BackingOff, Unhealthy, Tripped, Ejected, Closed, Removed}

func conditionOf(e proxy.EndpointState, failing bool) Condition {
	switch {
	case e.State == balance.Draining:
		return Removed
	case e.State == balance.Closed:
		return Closed
	case e.Health != nil && !e.Health.Healthy:
		return Unhealthy
	case e.Breaker != nil && e.Breaker.State != breaker.Closed:
		return Tripped
	case slices.Contains(e.EndpointStats.Ejected, eject.Outlier) || slices.Contains(e.EndpointStats.Ejected, eject.Overload):
		return Ejected
	case e.State == balance.BackingOff:
		return BackingOff
	case e.State == balance.Dialling:
		return Dialling
	case failing:
		return Failing
	case e.State == balance.NotReady:
		return NotReady
	}
	return Ready
}

// usable reports whether requests have a good chance there.
func (c Condition) usable() bool { return c == Ready || c == NotReady }

// judge says how the whole is, and what is wrong with it, the most urgent first.
func judge(s Snapshot) (Status, []string) {
	status, problems := Serving, []string{}
	worse := func(to Status, format string, args ...any) {
		if slices.Index(severity, to) > slices.Index(severity, status) {
			status = to
		}
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	if s.Draining {
		worse(Draining, "The signal to end has come; %s in flight.", plural(int(s.Requests.InFlight), "request is", "requests are"))
	}
	judgeEndpoints(s, worse)
	judgeRequests(s.Requests, worse)
	if s.Discovery.Error != "" {
		worse(Degraded, "Discovery fails, what it found before stays: %s", s.Discovery.Error)
	}
	if s.Config.Refused != "" {
		worse(Degraded, "The last reload was refused, the configuration before it goes on: %s", s.Config.Refused)
	}
	return status, problems
}

// judgeRequests takes one in a hundred for a sign that something is wrong. A server may fail now and then; the proxy itself turns
// nobody away without saying so.
func judgeRequests(r Requests, worse func(Status, string, ...any)) {
	if r.Rejected > 0 {
		to := Degraded
		if r.Rejected >= r.Rate/100 {
			to = Rejecting
		}
		worse(to, "%s turned away for want of room.", rate(r.Rejected))
	}
	if r.Failed > 0 && r.Failed >= r.Rate/100 {
		worse(Degraded, "%s answered with an error, or not at all.", rate(r.Failed))
	}
}

func judgeEndpoints(s Snapshot, worse func(Status, string, ...any)) {
	count := map[Condition]int{}
	known, useless := 0, []string{}
	for _, e := range s.Endpoints {
		if e.Condition == Removed {
			continue
		}
		known++
		count[e.Condition]++
		if !e.Condition.usable() {
			useless = append(useless, fmt.Sprintf("%s is %s", e.Key, e.Condition))
		}
	}
	switch {
	case known == 0:
		worse(Empty, "There is nobody to send requests to: they are answered 503.")
	case len(useless) == known:
		which := "All endpoints are"
		if known == 1 {
			which = "The only endpoint is"
		}
		worse(Down, "%s out of service: %s.", which, listing(count))
	case len(useless) > 3:
		worse(Degraded, "%d of %d endpoints are out of service: %s.", len(useless), known, listing(count))
	case len(useless) > 0:
		worse(Degraded, "%s.", strings.Join(useless, ", "))
	}
}

// listing counts the endpoints that are out of service by their condition.
func listing(count map[Condition]int) string {
	var all []string
	for _, c := range conditions {
		if n := count[c]; n > 0 && !c.usable() {
			all = append(all, fmt.Sprintf("%d %s", n, c))
		}
	}
	return strings.Join(all, ", ")
}

func rate(perSecond float64) string {
	switch {
	case perSecond >= 9.95:
		return fmt.Sprintf("%.0f requests a second are", perSecond)
	case perSecond == 1:
		return "1 request a second is"
	}
	return fmt.Sprintf("%.1f requests a second are", perSecond)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
