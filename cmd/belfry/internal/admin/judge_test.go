package admin

import (
	"strings"
	"testing"
)

func TestTheWholeInAWord(t *testing.T) {
	of := func(conditions ...Condition) (all []Endpoint) {
		for i, c := range conditions {
			all = append(all, Endpoint{Key: string(rune('a' + i)), Condition: c})
		}
		return all
	}
	for name, c := range map[string]struct {
		s    Snapshot
		want Status
		say  []string
	}{
		"well":                {Snapshot{Endpoints: of(Ready, NotReady)}, Serving, nil},
		"busy":                {Snapshot{Endpoints: of(NotReady, NotReady)}, Serving, nil},
		"removed ones":        {Snapshot{Endpoints: of(Ready, Removed)}, Serving, nil},
		"one of two":          {Snapshot{Endpoints: of(Ready, Failing)}, Degraded, []string{"b is failing."}},
		"many":                {Snapshot{Endpoints: of(Ready, Failing, Failing, Unhealthy, Closed)}, Degraded, []string{"4 of 5 endpoints are out of service: 2 failing, 1 unhealthy, 1 closed."}},
		"none":                {Snapshot{}, Empty, []string{"nobody to send requests to"}},
		"only removed":        {Snapshot{Endpoints: of(Removed)}, Empty, []string{"nobody to send requests to"}},
		"all down":            {Snapshot{Endpoints: of(BackingOff, Failing)}, Down, []string{"All endpoints are out of service: 1 failing, 1 backing off."}},
		"the only one":        {Snapshot{Endpoints: of(Unhealthy)}, Down, []string{"The only endpoint is out of service: 1 unhealthy."}},
		"no room":             {Snapshot{Endpoints: of(Ready), Requests: Requests{Rate: 100, Rejected: 42}}, Rejecting, []string{"42 requests a second are turned away"}},
		"a little":            {Snapshot{Endpoints: of(Ready), Requests: Requests{Rate: 100, Rejected: 0.1}}, Degraded, []string{"0.1 requests"}},
		"one":                 {Snapshot{Endpoints: of(Ready), Requests: Requests{Rate: 1, Failed: 1}}, Degraded, []string{"1 request a second is answered with an error"}},
		"no room, one out":    {Snapshot{Endpoints: of(Ready, Failing), Requests: Requests{Rate: 100, Rejected: 42}}, Rejecting, []string{"b is failing", "42"}},
		"errors":              {Snapshot{Endpoints: of(Ready), Requests: Requests{Rate: 100, Failed: 1}}, Degraded, []string{"with an error"}},
		"hardly any errors":   {Snapshot{Endpoints: of(Ready), Requests: Requests{Rate: 100, Failed: 0.9}}, Serving, nil},
		"discovery":           {Snapshot{Endpoints: of(Ready), Discovery: Discovery{Error: "no such host"}}, Degraded, []string{"no such host"}},
		"reload":              {Snapshot{Endpoints: of(Ready), Config: Config{Refused: "line 3"}}, Degraded, []string{"line 3"}},
		"draining before all": {Snapshot{Draining: true, Requests: Requests{InFlight: 1, Rejected: 3}}, Draining, []string{"1 request is in flight", "nobody", "3.0 requests"}},
		"down before no room": {Snapshot{Endpoints: of(Failing), Requests: Requests{Rate: 2, Rejected: 3, Failed: 2}}, Down, []string{"only endpoint", "3.0", "2.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, problems := judge(c.s)
			if status != c.want || len(problems) != len(c.say) {
				t.Fatalf("%s, %q; want %s and %d reasons", status, problems, c.want, len(c.say))
			}
			for i, say := range c.say {
				if !strings.Contains(problems[i], say) {
					t.Errorf("says %q, want %q in it", problems[i], say)
				}
			}
		})
	}
}
