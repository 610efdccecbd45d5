package timeout

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestFuseTimer looks inside, because a timer that was forgotten does no harm but to memory.
func TestFuseTimer(t *testing.T) {
	for name, f := range map[string]func(*deadline){
		"lifted": (*deadline).lift,
		"over":   (*deadline).end,
	} {
		d := &deadline{Context: t.Context(), at: time.Now().Add(time.Hour), fused: true}
		_ = d.Done()
		f(d)
		if d.fuse.timer.Stop() {
			t.Errorf("%s: the timer was still running", name)
		}
		d.end()
		d.end() // a response may say twice that it has ended
	}
}

// TestEndOfTheEnded ends a context twice that was watched only after its end.
func TestEndOfTheEnded(t *testing.T) {
	for _, fused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := &deadline{Context: t.Context(), at: time.Now().Add(time.Hour), fused: fused}
			d.end()
			<-d.Done()
			d.end()
		})
	}
}
