package load

import "testing"

// A survey of more endpoints than one call looks at ends, tells all of them the same, and looks at no more than that at a time.
func TestSurveyInSteps(t *testing.T) {
	const n = 3*stride + 7
	f := Expected{}.fleet()
	var all []*expected
	for range n {
		e := f.Join("", 0).(*expected)
		e.end(1000, e.Start(0), Success)
		all = append(all, e)
	}
	before, now, looks := f.survey.norms, int64(1000), 0
	for ; looks == 0 || f.survey.pass.at > 0 || f.survey.pass.telling; looks++ {
		now = f.survey.look(now, f.decay)
	}
	if want := 2 * 4; looks != want {
		t.Errorf("got %d looks, want %d", looks, want)
	}
	for i, e := range all {
		told := norms{typical: e.next.typical, noise: e.past.noise, spread: e.past.spread, swing: e.swing, real: e.real}
		if told == before || told != f.survey.norms {
			t.Fatalf("endpoint %d was not told what is usual", i)
		}
	}
	if got := f.survey.norms.typical; got < 900 || got > 1000 {
		t.Errorf("got %v as typical, want about 1000", got)
	}
}
