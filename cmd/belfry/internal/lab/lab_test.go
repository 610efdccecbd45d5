package lab

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// tiny is a scenario that takes no time, with figures that differ by policy and seed.
func tiny() Scenario {
	run := func(p sim.Policy, seed uint64) Outcome {
		all := sim.Run(sim.Config{Servers: eleven()[:3], Rate: 100, Horizon: 10 * second, Policy: p, Seed: seed})
		l := sim.LatenciesOf(all, nil)
		return Outcome{Figures: []Figure{{"mean", l.Mean() / ms}, {"share_a", sim.Share(all, nil, to(0))}}, Curve: curve(l, ms)}
	}
	return Scenario{
		Name: "tiny", About: "three servers", Unit: "ms", Policies: []string{"in-flight", "peak-ewma", sim.Default},
		Parts: []Part{{Name: "x", run: run}, {Name: "y", run: run}}, Judged: "mean",
	}
}

func TestFindNamesWhatIsAccepted(t *testing.T) {
	for name, want := range map[string]string{
		"nonsense":         "fleet-equal",
		"":                 "slow-middle",
		"fleet-equal/7":    "fleet-equal/10",
		"slow-middle/1":    "accepted: slow-middle",
		"fleet-equal/":     "fleet-equal/100",
		"fleet-equal/10/1": "fleet-equal/1",
	} {
		if _, err := Find(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want one that names %s", name, err, want)
		}
	}
	s, err := Find("fleet-equal/10")
	if err != nil || len(s.Parts) != 1 || s.Parts[0].Name != "10" {
		t.Errorf("fleet-equal/10 has %v, %v", s.Parts, err)
	}
}

func TestScenariosAreWellFormed(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Scenarios() {
		if names[s.Name] || s.About == "" || s.Unit == "" || len(s.Parts) == 0 || len(s.Policies) == 0 {
			t.Errorf("%+v is not complete, or there twice", s)
		}
		names[s.Name] = true
		if err := (Plan{Scenario: s, Policies: s.Policies}).Validate(); err != nil {
			t.Error(err)
		}
		if p, err := sim.Find(s.Policies[0]); err == nil && len(s.Policies) > 1 && !slices.Contains(s.Policies, sim.Default) { // else they are its own
			t.Errorf("%s compares %s, but leaves the default out", s.Name, p.Name)
		}
	}
	for _, want := range []string{
		"balls", "supermarket", "slow-middle", "tower-76", "fast-fail", "fleet-equal", "fleet-half", "fleet-tenth", "hang", "one-stuck",
		"streams", "cold-start", "flapping", "rolling-restart", "flicker", "warm", "vip", "retry-after", "outage", "your-own",
	} {
		if !names[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestBoundsAndPublishedFiguresNameWhatThereIs(t *testing.T) {
	has := func(scenario, policy, figure string) {
		t.Helper()
		s, err := Find(Bound{Scenario: scenario, Figure: figure}.part())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.policy(policy); err != nil {
			t.Error(err)
		}
		if len(s.Parts) != 1 {
			t.Errorf("%s has parts, and %q is of none", scenario, figure)
		}
	}
	for _, b := range Bounds() {
		has(b.Scenario, b.Policy, b.Figure)
		if b.Target < 0 || b.Reached < 0 || b.Target == 0 && b.AtLeast {
			t.Errorf("%+v is not complete, or asks for nothing", b)
		}
	}
	for _, p := range PublishedFigures() {
		has(p.Scenario, p.Policy, p.Figure)
	}
	if n := len(PublishedFigures()); n < 60 {
		t.Errorf("%d published figures: some belong to no policy of their scenario", n)
	}
}

func TestRunIsDeterminedAndTakesMeans(t *testing.T) {
	plan := Plan{Scenario: tiny(), Seed: 7, Seeds: 3}
	a, b := Run(plan), Run(plan)
	if x, y := text(t, plan, a), text(t, plan, b); x != y {
		t.Errorf("two runs differ:\n%s\n%s", x, y)
	}
	sum := 0.0
	for seed := uint64(7); seed < 10; seed++ {
		v, ok := Run(Plan{Scenario: tiny(), Seed: seed, Seeds: 1})[2].Figure(tiny(), "y.mean")
		if !ok {
			t.Fatal("no figure y.mean")
		}
		sum += v
	}
	if got, _ := a[2].Figure(tiny(), "y.mean"); math.Abs(got-sum/3) > 1e-9 {
		t.Errorf("the mean over three seeds is %v, want %v", got, sum/3)
	}
}

func text(t *testing.T, plan Plan, rows []Row) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTable(&b, plan, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheTableHasEveryFigure(t *testing.T) {
	plan := Plan{Scenario: tiny(), Seed: 1, Seeds: 2}
	got := text(t, plan, Run(plan))
	for _, want := range []string{"tiny: three servers", "seeds 1 to 2", "\nx\n", "\ny\n", "policy", "mean", "share a", "in-flight", "default"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if strings.HasSuffix(line, " \n") {
			t.Errorf("%q ends in spaces", line)
		}
	}
}

func TestJSONHasTheFormThatScriptsRead(t *testing.T) {
	plan := Plan{Scenario: tiny(), Seed: 5}
	rows := Run(plan)
	rows[0].Parts[0].Figures[0].Value = math.NaN() // nothing was answered
	var b bytes.Buffer
	if err := WriteJSON(&b, plan, rows); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Scenario string
		Seed     uint64
		Rows     []struct {
			Policy  string
			Figures map[string]float64
		}
	}
	decoder := json.NewDecoder(&b)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Scenario != "tiny" || got.Seed != 5 || len(got.Rows) != 3 || got.Rows[2].Policy != sim.Default {
		t.Errorf("%+v", got)
	}
	if keys := slices.Sorted(maps.Keys(got.Rows[2].Figures)); !slices.Equal(keys, []string{"x.mean", "x.share_a", "y.mean", "y.share_a"}) {
		t.Errorf("figures %v", keys)
	}
	if _, ok := got.Rows[0].Figures["x.mean"]; ok {
		t.Error("a figure that there is not has a value")
	}
}

func TestVerdicts(t *testing.T) {
	row := func(policy string, v float64) Row {
		return Row{policy, []Outcome{{Figures: []Figure{{"v", v}}}}}
	}
	rows := []Row{row("random", 1), row("in-flight", 8), row("peak-ewma", 10), row("peak-ewma/1s", 20), row("default", 9), row("default/1s", 4)}
	s := Scenario{Name: "s", Judged: "v", Parts: []Part{{}}}
	got := Verdicts(s, rows)
	if len(got) != 2 || got[0].Rival != "in-flight" || math.Abs(got[0].Change-0.125) > 1e-9 || math.Abs(got[1].Change+0.5) > 1e-9 {
		t.Errorf("less is better: %+v", got)
	}
	s.Higher = true
	got = Verdicts(s, rows)
	if got[0].Rival != "peak-ewma" || math.Abs(got[0].Change-10./9+1) > 1e-9 || got[1].Rival != "peak-ewma/1s" {
		t.Errorf("more is better: %+v", got)
	}
	s.Missing = true
	got = Verdicts(s, []Row{row("in-flight", 0.99), row("peak-ewma", 0.998), row("default", 0.996)})
	if math.Abs(got[0].Change-1) > 1e-9 {
		t.Errorf("what is missing to 1 is twice as much: %+v", got)
	}
	s.Judged = ""
	if got := Verdicts(s, rows); got != nil {
		t.Errorf("not judged: %+v", got)
	}
}

func TestABoundIsMetHeldOrNeither(t *testing.T) {
	most := Bound{Target: 10, Reached: 12}
	least := Bound{Target: 10, Reached: 8, AtLeast: true}
	for _, c := range []struct {
		b            Bound
		tuned, fresh float64
		met, held    bool
	}{
		{most, 9, 10, true, true},
		{most, 9, 11, false, true},
		{most, 13, 9, false, false},
		{least, 10, 11, true, true},
		{least, 9, 11, false, true},
		{least, 11, 7, false, false},
	} {
		check := Check{Bound: c.b, Tuned: c.tuned, Fresh: c.fresh, targetTuned: c.b.Target, targetFresh: c.b.Target}
		if check.Met() != c.met || check.Held() != c.held {
			t.Errorf("%+v: met %v, held %v", check, check.Met(), check.Held())
		}
	}
}

func TestAdvice(t *testing.T) {
	row := func(policy string, failed, p99, mean float64) Row {
		return Row{policy, []Outcome{{Figures: []Figure{{"failed", failed}, {"mean", mean}, {"p50", mean}, {"p99", p99}, {"p999", p99}}}}}
	}
	for _, c := range []struct {
		name  string
		rows  []Row
		take  string
		loses string
	}{
		{"the lowest p99", []Row{row("random", 0, 20, 5), row("in-flight", 0, 10, 5), row(sim.Default, 0, 15, 5)}, "in-flight", ""},
		{"the default among equals", []Row{row("in-flight", 0, 10, 5), row(sim.Default, 0, 10.2, 6)}, sim.Default, "mean is 6.000, with in-flight 5.000"},
		{"the lowest mean among equals", []Row{row("in-flight", 0, 10, 5), row("full-scan", 0, 10.2, 4), row(sim.Default, 0, 20, 9)}, "full-scan", ""},
		{"few failures before all", []Row{row("in-flight", 0.1, 1, 1), row(sim.Default, 0.0005, 15, 5), row("random", 0, 16, 5)}, sim.Default, "p99 is 15.00, with in-flight 1.000"},
		{"no oracle", []Row{row("jsq-oracle", 0, 1, 1), row(sim.Default, 0, 15, 5)}, sim.Default, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := Advise(c.rows)
			if a.Take != c.take {
				t.Errorf("take %s, want %s", a.Take, c.take)
			}
			if (c.loses == "") != (a.Loses == nil) || c.loses != "" && !slices.Contains(a.Loses, c.loses) {
				t.Errorf("loses %q, want %q", a.Loses, c.loses)
			}
		})
	}
}

// TestThePageNeedsNothingElse, and shows every scenario with a plot.
func TestThePageNeedsNothingElse(t *testing.T) {
	s := tiny()
	r := Report{Sections: []Section{{s, Run(Plan{Scenario: s, Seed: 1})}}}
	var b bytes.Buffer
	if err := r.WritePage(&b); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, not := range []string{"http:", "https:", "<script", "<link", "src=", "url(", "@import", "NaN", "Inf", "ZgotmplZ"} {
		if strings.Contains(got, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if n := strings.Count(got, "<svg"); n != 4 {
		t.Errorf("%d plots, want bars and a curve for each of two parts", n)
	}
	for _, want := range []string{`id="tiny"`, "Three servers.", "p-default", "</html>"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// tables is where the committed ones are.
const tables = "../../../../docs/balancing.md"

// TestTheCommittedTableIsCurrent compares rows of the quickest scenarios, digit by digit.
func TestTheCommittedTableIsCurrent(t *testing.T) {
	current(t, "hang", "streams", "demo", "warm", "vip", "priorities")
}

// current fails if the default's rows in the committed tables, or all of a scenario with policies of its own, are not what the scenarios give now.
func current(t *testing.T, scenarios ...string) {
	t.Helper()
	data, err := os.ReadFile(tables)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scenarios {
		s, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		_, section, _ := strings.Cut(string(data), "\n### "+name+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		policies := []string{sim.Default}
		if s.ownPolicies() {
			policies = nil
		}
		rows := Run(Plan{Scenario: s, Policies: policies, Seed: 1, Seeds: ReportSeeds})
		for _, g := range grids(s, rows) {
			var want strings.Builder
			pipes(&want, g.headers, g.rows)
			for line := range strings.Lines(want.String()) {
				if !strings.Contains(section, line) {
					t.Errorf("%s: %s has no line\n%swrite it anew: belfry lab report --markdown docs/balancing.md", name, tables, line)
				}
			}
		}
	}
}
