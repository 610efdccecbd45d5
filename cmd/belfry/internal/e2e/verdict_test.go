package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/e2e/record"
)

// A verdict is what became of a scenario's requests.
type verdict struct {
	name                        string
	requests, failed, avoidable int
	fair                        time.Duration // 0: nobody has recovered
	kinds                       map[string]int
}

// judge says of each request that failed whether it could have been sent again. It could, if its method is idempotent, for the bodies
// are short enough to be kept; and if it is not but no server was given it. It could not if the client had got the
// beginning of an answer. Nor could it if it was written to a server in the very moment when that ended: what arrives there before it
// ends, and is never read, looks the same as what is read and not answered. That it was written, the proxy says.
//
// It fails the test for those that could, and for requests that were carried out twice and must not be.
func judge(s *stage, name string) verdict {
	s.Helper()
	given, records := map[string]int{}, s.load.all()
	for _, server := range s.servers {
		for id, n := range server.received() {
			given[id] += n
		}
	}
	v := verdict{name: name, requests: len(records), kinds: map[string]int{}}
	for _, r := range records {
		if r.Method == http.MethodPost && given[r.ID] > 1 {
			s.Errorf("%s %s was given to servers %d times", r.Method, r.ID, given[r.ID])
		}
		if r.Error == "" {
			if given[r.ID] == 0 {
				s.Errorf("%s %s was answered by nobody", r.Method, r.ID)
			}
			continue
		}
		v.failed++
		switch {
		case r.Broke:
			v.kinds["the answer broke off"]++
		case r.Method == http.MethodPost && given[r.ID] > 0:
			v.kinds["not idempotent, and given to a server"]++
		case r.Method == http.MethodPost && r.Reason == "upstream" && s.endedDuring(r):
			v.kinds["not idempotent, and written to a server that ended"]++
		default:
			v.avoidable++
			s.Errorf("%s %s could have been tried again, was given to %d: after %v %v (%s)", r.Method, r.ID, given[r.ID], r.Over.Sub(r.Sent), r.Error, r.Reason)
		}
	}
	s.Logf("%s %v", v, v.kinds)
	if s.Failed() {
		s.Logf("the proxy says\n%s", s.proxy.said())
	}
	return v
}

// endedDuring reports whether a server ended while r was on its way.
func (s *stage) endedDuring(r record.Record) bool {
	return slices.ContainsFunc(s.ended, func(e span) bool { return r.Sent.Before(e.until) && r.Over.After(e.from) })
}

func (v verdict) String() string {
	fair := "–"
	if v.fair > 0 {
		fair = fmt.Sprintf("%.1f s", v.fair.Seconds())
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %s |", v.name, v.requests, v.failed, v.avoidable, fair)
}

// table is all of verdicts, as in the documentation.
func table(verdicts []verdict) string {
	var b strings.Builder
	b.WriteString("| scenario | requests | failed | avoidable | time to fair share |\n| --- | --: | --: | --: | --: |\n")
	for _, v := range verdicts {
		b.WriteString(v.String() + "\n")
	}
	return b.String()
}

func contains(text string, all ...string) bool {
	for _, part := range all {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
