package lab

import (
	"strings"
	"testing"

	"github.com/belfry-go/belfry/cmd/belfry/internal/lab/sim"
)

// agree runs the scenarios that which keeps, and compares their figures with the published ones.
func agree(t *testing.T, seeds int, which func(Published) bool) {
	t.Helper()
	rows, checked := map[[2]string]Row{}, 0
	for _, p := range PublishedFigures() {
		if !which(p) {
			continue
		}
		s, err := Find(p.Scenario)
		if err != nil {
			t.Fatal(err)
		}
		s = onlyWith(s, which, p)
		key := [2]string{p.Scenario, p.Policy}
		row, ok := rows[key]
		if !ok {
			row = Run(Plan{Scenario: s, Policies: []string{p.Policy}, Seed: 1, Seeds: seeds})[0]
			rows[key] = row
		}
		v, ok := row.Figure(s, p.Figure)
		if !ok {
			t.Fatalf("%s has no figure %q", s.Name, p.Figure)
		}
		if checked++; !p.Agrees(v) {
			t.Errorf("%s: %s under %s is %.5g, want %.5g (%s)", p.Scenario, p.Figure, p.Policy, v, p.Value, p.Source)
		}
	}
	if checked == 0 {
		t.Fatal("nothing was compared")
	}
}

// onlyWith leaves those parts of s that published figures are of.
func onlyWith(s Scenario, which func(Published) bool, like Published) Scenario {
	var parts []Part
	for _, part := range s.Parts {
		for _, p := range PublishedFigures() {
			if p.Scenario == s.Name && p.Policy == like.Policy && which(p) && (part.Name == "" || hasPart(p.Figure, part.Name)) {
				parts = append(parts, part)
				break
			}
		}
	}
	s.Parts = parts
	return s
}

func hasPart(figure, part string) bool {
	return len(figure) > len(part) && figure[:len(part)+1] == part+"."
}

func TestQuickFiguresAreAsPublished(t *testing.T) {
	agree(t, 1, func(p Published) bool {
		return p.Scenario == "tower-76" || p.Scenario == "slow-middle" && p.Policy == "in-flight" || p.Scenario == "hang" && p.Policy == "peak-ewma"
	})
}

// TestSupermarketIsAsTheClosedForm with fewer queues for less time than in the scenario.
func TestSupermarketIsAsTheClosedForm(t *testing.T) {
	for _, c := range []struct {
		policy string
		load   float64
		d      int
	}{{"random", 0.5, 1}, {"p2c-oracle", 0.5, 2}, {"p2c-oracle", 0.7, 2}, {"in-flight", 0.7, 2}} {
		p, err := sim.Find(c.policy)
		if err != nil {
			t.Fatal(err)
		}
		o := market(60, c.load, 1500*int64(unit))(p, 1)
		if got, want := valueOf(o, "mean"), supermarketMean(c.load, c.d); got < 0.97*want || got > 1.04*want {
			t.Errorf("%s at load %v: mean %v, the closed form has %v", c.policy, c.load, got, want)
		}
		if got, want := valueOf(o, "closed_form"), supermarketMean(c.load, c.d); got != want {
			t.Errorf("%s at load %v is compared with %v, want %v", c.policy, c.load, got, want)
		}
	}
}

func TestTheory(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"mean, one choice, 0.9", supermarketMean(0.9, 1), 10},
		{"mean, two choices, 0.5", supermarketMean(0.5, 2), 1.266},
		{"mean, two choices, 0.9", supermarketMean(0.9, 2), 2.614},
		{"mean, two choices, 0.99", supermarketMean(0.99, 2), 5.432},
		{"mean, three choices, 0.9", supermarketMean(0.9, 3), 2.028},
		{"tail, two choices, 0.9", supermarketTail(0.9, 2, 5), 0.0382},
		{"tail, one choice, 0.9", supermarketTail(0.9, 1, 2), 0.81},
		// Tables of chi-square: 5 % at 3.841 with one degree of freedom, at 18.307 with ten.
		{"5 % of one degree", upperGamma(0.5, 3.841/2), 0.05},
		{"5 % of ten degrees", upperGamma(5, 18.307/2), 0.05},
		{"0.1 % of ninety-six degrees", upperGamma(48, 144.567/2), 0.001},
		{"95 % of ten degrees", upperGamma(5, 3.940/2), 0.95},
		{"even", chiSquare([]int{10, 10, 10}), 1},
		{"alone", chiSquare([]int{10}), 1},
		{"uneven", chiSquare([]int{500, 600}), 0.00257},
	} {
		if diff := c.got - c.want; diff > 0.001*max(c.want, 1) || diff < -0.001*max(c.want, 1) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

// TestTheRecordingIsAsPublished: mean 169.6 ms, 167.5, 181.7 and 192.3 ms at 50, 95 and 99 %, at most 200 ms.
func TestTheRecordingIsAsPublished(t *testing.T) {
	p, err := sim.Find("random")
	if err != nil {
		t.Fatal(err)
	}
	l := sim.LatenciesOf(sim.Run(sim.Config{Servers: eleven(), Rate: 1000, Horizon: 100 * second, Policy: p, Seed: 1}), nil)
	for _, c := range []struct{ got, want float64 }{
		{l.Mean(), 169.6}, {l.At(0.5), 167.5}, {l.At(0.95), 181.7}, {l.At(0.99), 192.3}, {l.At(1), 200},
	} {
		if got := c.got / ms; got < c.want-0.3 || got > c.want+0.3 {
			t.Errorf("%v ms, want %v", got, c.want)
		}
	}
}

// TestQuickBoundsAreHeld checks some; the others take too long for a test that is run often.
func TestQuickBoundsAreHeld(t *testing.T) {
	hold(t, func(b Bound) bool {
		return b.Scenario == "streams" || b.Scenario == "warm" || b.Scenario == "vip" || b.Scenario == "priorities" || b.Scenario == "hang" || b.Scenario == "one-stuck" && strings.Contains(b.Figure, "-at-20.")
	})
}
