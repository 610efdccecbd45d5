package pick

import "testing"

// What is counted stays right when the count of successes in the state wraps around.
func TestCountWraps(t *testing.T) {
	const wrap = uint64(1) << 31
	for _, before := range []uint64{wrap - 3, 5*wrap - 3, 1<<63 + wrap - 3} {
		e := &Endpoint{}
		e.failed.Store(7)
		e.ignored.Store(11)
		e.begun.Store(before + 7 + 11)
		e.state.Store((before % wrap) * aSuccess)
		for i := range 6 {
			for range 4 {
				e.Hold()
			}
			for range 3 {
				e.Begin()
			}
			want := Counts{Holders: 4, Calls: 3, Successes: before + uint64(i), Failures: 7 + uint64(i), Ignored: 11 + uint64(i)}
			if got := e.Count(); got != want {
				t.Fatalf("round %d: got %+v, want %+v", i, got, want)
			}
			e.Fail()
			e.Ignore()
			e.Finish()
			e.Drop()
		}
		if e.Hold(); e.Retire() || !e.Drop() {
			t.Error("the last holder was not told")
		}
	}
}
