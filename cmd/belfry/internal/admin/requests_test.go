package admin

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/proxy"
)

func TestTheClassOfARequest(t *testing.T) {
	for _, c := range []struct {
		status int
		reason string
		want   outcome
	}{
		{200, "", succeeded},
		{101, "", succeeded},
		{304, "", succeeded},
		{404, "", clientError},
		{429, "", clientError},
		{499, "", clientError}, // a server may say that too
		{400, "request body unreadable", clientError},
		{413, "request body too long", clientError},
		{500, "", serverError},
		{503, "", serverError},
		{500, "no further attempt", serverError},
		{503, "buffer: full", rejected},
		{429, "rate: empty", rejected},
		{504, "deadline", timedOut},
		{504, "", serverError},
		{502, "no connection", unreachable},
		{502, "", serverError},
		{499, "client gone", clientGone},
		{0, "", broken},
		{0, "client gone", broken},
	} {
		if got := outcomeOf(proxy.Record{Status: c.status, Reason: c.reason}); got != c.want {
			t.Errorf("%d %q is %v, want %v", c.status, c.reason, got, c.want)
		}
	}
}

func TestReasonsDoNotGrowForEver(t *testing.T) {
	r := newRequests()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1000 {
				r.note(proxy.Record{Status: 503, Reason: fmt.Sprintf("reason %d", i%100), Latency: time.Millisecond})
			}
		})
	}
	all.Wait()
	total := uint64(0)
	for _, n := range r.rejected() {
		total += n
	}
	if n := len(r.rejected()); n != maxReasons+1 || total != 4000 || r.rejected()[otherReason] == 0 {
		t.Errorf("%d reasons with %d requests: %v", n, total, r.rejected())
	}
}
