package lab

import "testing"

// hold fails if a figure is worse than what was reached.
func hold(t *testing.T, which func(Bound) bool) {
	t.Helper()
	checks, err := CheckBounds(which)
	if err != nil {
		t.Fatal(err)
	}
	if len(checks) == 0 {
		t.Fatal("no bound was checked")
	}
	for _, c := range checks {
		if !c.Held() {
			t.Errorf("%s: %s of %s is %.5g, and %.5g with other seeds; %.5g was reached, and wanted is %s",
				c.Scenario, c.Figure, c.Policy, c.Tuned, c.Fresh, c.Reached, c.Wants())
		}
	}
}
