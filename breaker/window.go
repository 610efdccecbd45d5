package breaker

import "time"

const steps = 10

// A window counts how calls ended in the last ten steps, the present one included. The counts are exact: a call that ended at t
// counts until the tenth step after its own begins, and not at all from then on.
type window struct {
	step            time.Duration
	number          int64         // of the present step
	ends            time.Duration // the present step does
	buckets         [steps]bucket // by number, modulo steps
	calls, failures int           // of all of them
}

type bucket struct{ calls, failures int }

// add counts a call that ended at now.
func (w *window) add(now time.Duration, failed bool) {
	w.advance(now)
	b := &w.buckets[w.number%steps]
	b.calls++
	w.calls++
	if failed {
		b.failures++
		w.failures++
	}
}

// advance forgets what is too old at now. A time before the present step, read by somebody who then had to wait for the
// lock, is taken for the present.
func (w *window) advance(now time.Duration) {
	if now < w.ends {
		return
	}
	number := int64(now / w.step)
	for n := max(w.number, number-steps) + 1; n <= number; n++ {
		b := &w.buckets[n%steps]
		w.calls -= b.calls
		w.failures -= b.failures
		*b = bucket{}
	}
	w.number, w.ends = number, time.Duration(number+1)*w.step
}

// forget empties the window.
func (w *window) forget() { *w = window{step: w.step} }
