package admin

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/balance"
)

func TestDecisionsAsJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6789_000, time.UTC)
	p := busy(at)
	a := New(p)
	if got := ask(a, http.MethodGet, "/api/decisions").Body.String(); !strings.Contains(got, `"kept":false,"decisions":[]`) {
		t.Errorf("where none are kept: %s", got)
	}
	p.latest = []balance.Decision{}
	if got := ask(a, http.MethodGet, "/api/decisions").Body.String(); !strings.Contains(got, `"kept":true,"decisions":[]`) {
		t.Errorf("before the first: %s", got)
	}
	p.latest = []balance.Decision{
		{
			Number: 7, At: at, Attempt: 2, By: balance.ByDraw, Chosen: 1, Others: 3, Ended: balance.Failed, Took: 1500 * time.Microsecond,
			Candidates: []balance.Candidate{
				{Key: "http://a", Cost: math.Inf(1), Held: 3, Answer: balance.Refused},
				{Key: "http://b", Cost: 12.5, Latency: 2 * time.Millisecond, Answer: balance.Granted},
			},
		},
		{Number: 8, At: at, Attempt: 1, By: balance.ByWaiting, Ended: balance.InFlight, Candidates: []balance.Candidate{{Key: "http://a"}}},
	}
	w := ask(a, http.MethodGet, "/api/decisions")
	var got struct{ Decisions []json.RawMessage }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Header().Get("Content-Type") != "application/json" || len(got.Decisions) != 2 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	for i, want := range []string{
		`{"number":7,"at":"2026-01-02T03:04:05.006789Z","attempt":2,"by":"draw","candidates":[` +
			`{"endpoint":"http://a","cost":null,"latency_ms":null,"held":3,"answer":"refused"},` +
			`{"endpoint":"http://b","cost":12.5,"latency_ms":2,"held":0,"answer":"granted"}],` +
			`"others":3,"chosen":"http://b","ended":"failure","took_ms":1.5}`,
		`{"number":8,"at":"2026-01-02T03:04:05.006789Z","attempt":1,"by":"wait","candidates":[` +
			`{"endpoint":"http://a","cost":null,"latency_ms":null,"held":0,"answer":"not asked"}],` +
			`"chosen":"http://a","ended":"in flight","took_ms":null}`,
	} {
		if string(got.Decisions[i]) != want {
			t.Errorf("got  %s\nwant %s", got.Decisions[i], want)
		}
	}
}
