// Package explain says in words why an endpoint of a running proxy gets little, from what its admin address shows.
package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/belfry-go/belfry/cmd/belfry/internal/admin"
)

// An Explanation is what there is to say of one endpoint.
type Explanation struct {
	// Summary says what it gets, and what would be its part.
	Summary string
	// Reasons is why that is less, the one that weighs most first. It is never empty.
	Reasons []string
	// Decisions says how it did in the latest decisions.
	Decisions string
}

// Write writes it, a paragraph for the summary, a line for each reason, and a paragraph for the decisions.
func (e Explanation) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s\n\n- %s\n\n%s\n", e.Summary, strings.Join(e.Reasons, "\n- "), e.Decisions)
	return err
}

// Find returns the endpoint that is called name: its key, or its host and port.
func Find(s admin.Snapshot, name string) (admin.Endpoint, error) {
	var names []string
	found := admin.Endpoint{Condition: admin.Removed}
	for _, e := range s.Endpoints {
		_, host, _ := strings.Cut(e.Key, "://")
		if (e.Key == name || host == name || e.Addr == name) && (found.Key == "" || found.Condition == admin.Removed) {
			found = e
		}
		names = append(names, e.Key)
	}
	switch {
	case found.Key != "":
		return found, nil
	case names == nil:
		return found, fmt.Errorf("endpoint %q is not known; there is none", name)
	}
	return found, fmt.Errorf("endpoint %q is not known; there are %s", name, strings.Join(slices.Compact(names), ", "))
}

// Endpoint explains e, which is one of s, by what s and the latest decisions say.
func Endpoint(s admin.Snapshot, d admin.Decisions, e admin.Endpoint) Explanation {
	v := newView(s, d, e)
	x := Explanation{Summary: v.summary(), Decisions: v.decided()}
	for _, why := range []func(*view) string{
		(*view).gone, (*view).unhealthy, (*view).tripped, (*view).ejected, (*view).unreached, (*view).outranked, (*view).elsewhere,
		(*view).failing, (*view).slow, (*view).full, (*view).busy, (*view).fresh, (*view).keyed, (*view).passedOver, (*view).light, (*view).rare,
	} {
		if text := why(v); text != "" {
			x.Reasons = append(x.Reasons, text)
		}
	}
	if x.Reasons == nil {
		x.Reasons = []string{"Nothing keeps it from its share."}
	}
	return x
}

// A view is an endpoint among the others.
type view struct {
	admin.Snapshot
	e      admin.Endpoint
	others []admin.Endpoint // that are there
	weight int              // of all together
	record record
	kept   bool
}

func newView(s admin.Snapshot, d admin.Decisions, e admin.Endpoint) *view {
	v := &view{Snapshot: s, e: e, weight: e.Weight, kept: d.Kept, record: recordOf(d, e.Key)}
	for _, o := range s.Endpoints {
		if o.Key != e.Key && o.Condition != admin.Removed {
			v.others = append(v.others, o)
			v.weight += o.Weight
		}
	}
	return v
}

func (v *view) summary() string {
	part := float64(v.e.Weight) / float64(max(v.weight, 1))
	which := "an equal part is"
	if slices.ContainsFunc(v.others, func(o admin.Endpoint) bool { return o.Weight != v.e.Weight }) {
		which = "its part by weight is"
	}
	if v.e.Share == nil {
		return fmt.Sprintf("%s is %s. Nothing was sent to anybody in the last %s; %s %s.", v.e.Key, v.e.Condition, seconds(v.WindowSeconds), which, percent(part))
	}
	return fmt.Sprintf("%s is %s. It got %s of the attempts of the last %s; %s %s.", v.e.Key, v.e.Condition, percent(*v.e.Share), seconds(v.WindowSeconds), which, percent(part))
}
