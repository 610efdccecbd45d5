package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/admin"
	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// saved is n decisions, one each 10 ms, of an endpoint a that takes 10 ms, of b that takes 100 ms, and of c that fails every second time after 5 ms.
// They were taken in turn.
func saved(t *testing.T, n int, change func(*admin.Decisions)) Recording {
	t.Helper()
	var d admin.Decisions
	names, took := []string{"a", "b", "c"}, []float64{10, 100, 20}
	began := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for i := range n {
		at := i % 3
		one := admin.Decision{
			At: began.Add(time.Duration(i) * 10 * time.Millisecond), Chosen: names[at], Ended: "success", Took: new(took[at]),
			Candidates: []admin.Candidate{{Endpoint: names[at]}, {Endpoint: names[(at+1)%3]}},
		}
		if at == 2 && i%2 == 0 {
			one.Ended, one.Took = "failure", new(5.0)
		}
		d.Decisions = append(d.Decisions, one)
	}
	if change != nil {
		change(&d)
	}
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRecording("saved.json", data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v ± %v", what, got, want, tolerance)
	}
}

func TestReplay(t *testing.T) {
	r := saved(t, 3000, nil)
	under := func(name string) sharing {
		policy, err := sim.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		return Replay{Recording: r, Seed: 1, Seeds: 3}.run(policy)
	}
	t.Run("what was recorded", func(t *testing.T) {
		near(t, "failed", r.outcome.failed, 1./6, 1e-9)
		near(t, "mean", r.outcome.mean, (1000*10+1000*100+500*20)/2500., 1e-9)
		near(t, "p99", r.outcome.p99, 100, 0)
		near(t, "same", r.outcome.same, 1, 0)
	})
	t.Run("random shares evenly, and rarely agrees", func(t *testing.T) {
		s := under("random")
		for _, share := range s.shares {
			near(t, "share", share, 1./3, 0.03)
		}
		near(t, "same", s.same, 1./3, 0.03)
		near(t, "failed", s.failed, 1./6, 0.03)
		near(t, "mean", s.mean, 48, 3)
	})
	t.Run("the default goes where answers are good and quick", func(t *testing.T) {
		s := under(sim.Default)
		if s.shares[0] < 0.6 || s.shares[1] > 0.05 || s.failed > 0.17 || s.mean > 20 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("round robin does what it was recorded with, but for its place", func(t *testing.T) {
		s := under("round-robin")
		for _, share := range s.shares {
			near(t, "share", share, 1./3, 0.001)
		}
	})
	t.Run("it is determined", func(t *testing.T) {
		if a, b := fmt.Sprint(under(sim.Default)), fmt.Sprint(under(sim.Default)); a != b {
			t.Errorf("%s, then %s", a, b)
		}
	})
}

func TestReplayLeavesOutWhatWasNotSent(t *testing.T) {
	r := saved(t, 30, func(d *admin.Decisions) {
		d.Decisions[3].Ended, d.Decisions[3].Took = "returned", nil
		d.Decisions[6].Ended, d.Decisions[6].Took = "in flight", nil
		d.Decisions[9].Took = new(1e300)
	})
	if len(r.arrivals) != 29 || r.endpoints[0].chosen != 9 || len(r.endpoints[0].good) != 7 {
		t.Errorf("%+v", r)
	}
}

func TestReplayInWords(t *testing.T) {
	r := saved(t, 300, func(d *admin.Decisions) {
		d.Decisions[0].Candidates = append(d.Decisions[0].Candidates,
			admin.Candidate{Endpoint: "expected", Latency: new(7.0)}, admin.Candidate{Endpoint: "nobody knows"})
	})
	var got bytes.Buffer
	if err := WriteReplay(&got, Replay{Recording: r, Policies: []string{"round-robin"}, Seed: 1, Seeds: 1}); err != nil {
		t.Fatal(err)
	}
	const want = `saved.json: 300 decisions over 2.99s among 5 endpoints
latencies in ms, seed 1

policy`
	if got := got.String(); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s", got)
	}
	for _, line := range []string{
		"recorded     100.0 %  16.7 %  48.00  100.0  33.3 %  33.3 %  33.3 %   0.0 %   0.0 %",
		"#1 a: 100 answers, 0.0 % of them failures, median 10.00 ms",
		"#3 c: 100 answers, 50.0 % of them failures, median 20.00 ms",
		"#4 expected: no answer of its own; it takes what was expected of it",
		"#5 nobody knows: no answer of its own; it takes what all of them took",
	} {
		if !strings.Contains(got.String(), line+"\n") {
			t.Errorf("%q is missing in\n%s", line, got.String())
		}
	}
}

func TestReplayOfManyEndpoints(t *testing.T) {
	r := saved(t, 300, func(d *admin.Decisions) {
		for i := range d.Decisions {
			d.Decisions[i].Chosen = fmt.Sprint("e", i%10)
		}
	})
	var got bytes.Buffer
	if err := WriteReplay(&got, Replay{Recording: r, Policies: []string{"random"}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.String(), "#8  others") || strings.Contains(got.String(), "#9") || !strings.Contains(got.String(), "20.0 %\n") {
		t.Errorf("got\n%s", got.String())
	}
}

func TestRecordingsThatCannotBeReplayed(t *testing.T) {
	for text, want := range map[string]string{
		"<html>":           "f: must be what /api/decisions answers",
		`{"decisions":[]}`: "f: must have decisions, and has none; decisions: N",
		`{"decisions":[{"chosen":"a","ended":"failure","took_ms":1}]}`: "f: must have a decision that ended with a success",
	} {
		if _, err := ParseRecording("f", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := LoadRecording("none.json"); err == nil {
		t.Error("a file that is not there was read")
	}
	if err := (Replay{Policies: []string{"guess"}}).Validate(); err == nil || !strings.Contains(err.Error(), "guess") {
		t.Errorf("%v", err)
	}
}

func ExampleParseRecording() {
	data := `{"decisions": [
		{"at": "2026-01-02T12:00:00Z", "chosen": "http://a", "ended": "success", "took_ms": 10, "candidates": [{"endpoint": "http://a"}]},
		{"at": "2026-01-02T12:00:01Z", "chosen": "http://a", "ended": "success", "took_ms": 10, "candidates": [{"endpoint": "http://a"}]}
	]}`
	r, err := ParseRecording("saved.json", []byte(data))
	if err != nil {
		fmt.Println(err)
		return
	}
	var b strings.Builder
	_ = WriteReplay(&b, Replay{Recording: r, Policies: []string{"default"}, Seed: 1})
	fmt.Print(b.String())
	// Output:
	// saved.json: 2 decisions over 1s among 1 endpoint
	// latencies in ms, seed 1
	//
	// policy       same  failed   mean    p99       #1
	// ────────────────────────────────────────────────
	// recorded  100.0 %   0.0 %  10.00  10.00  100.0 %
	// default   100.0 %   0.0 %  10.00  10.00  100.0 %
	//
	// #1 http://a: 2 answers, 0.0 % of them failures, median 10.00 ms
}
