package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// promises is how many allocations a call may cost, for what the documentation of the packages promises.
var promises = map[string]float64{
	"Do/success/serial/belfry":             0,
	"Do/success,five-layers/serial/belfry": 0,
	"Do/failure/serial/belfry":             0,
	"Do/failure,five-layers/serial/belfry": 0,
	"Limit/success/serial/belfry":          0,
	"Limit/failure/serial/belfry":          0,
	"Shed/success/serial/belfry":           0,
	"Shed/failure/serial/belfry":           0,
	"Rate/success/serial/belfry":           0,
	"Rate/failure/serial/belfry":           0,
	"Buffer/success/serial/belfry":         0,
	"Buffer/failure/serial/belfry":         0,
	"Timeout/unwatched/serial/belfry":      1,
	"Timeout/watched/serial/belfry":        6, // one, and what context.WithTimeout costs
	"Timeout/failure/serial/belfry":        1,
	"Retry/success/serial/belfry":          1,
	"Breaker/success/serial/belfry":        0,
	"Breaker/success,ratio/serial/belfry":  0,
	"Breaker/failure/serial/belfry":        0,
	"Hedge/success/serial/belfry":          3,
	"Hedge/success/serial/belfry,detached": 8,
	"Balance/pending-3/serial/belfry":      0,
	"Balance/pending-10/serial/belfry":     0,
	"Balance/pending-100/serial/belfry":    0,
	"Balance/pending-1000/serial/belfry":   0,
	"Balance/latency-3/serial/belfry":      0,
	"Balance/latency-10/serial/belfry":     0,
	"Balance/latency-100/serial/belfry":    0,
	"Balance/latency-1000/serial/belfry":   0,
	"Stack/success/serial/belfry":          2,
	"Stack/client/serial/belfry":           2,
	"Policies/success/serial/belfry":       2,
	"HTTP/fake/serial/belfry":              21, // the bare client's 9 among them; no more than it was
}

// broken says which promises got breaks, and for which successes nobody has made one.
func broken(got round) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(got)) {
		allowed, promised := promises[name]
		allocs, counted := got[name]["allocs/op"]
		_, what, _ := strings.Cut(name, "/")
		switch {
		case !promised && !strings.HasPrefix(what, "failure") && !strings.HasPrefix(what, "refused"):
			lines = append(lines, fmt.Sprintf("%s: nothing is promised about it in promises.go", name))
		case promised && (!counted || allocs > allowed):
			lines = append(lines, fmt.Sprintf("%s: %v allocations, promised are %v", name, allocs, allowed))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(promises)) {
		if got[name] == nil {
			lines = append(lines, fmt.Sprintf("%s: promised, and did not run", name))
		}
	}
	return lines
}
