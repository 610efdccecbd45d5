// Package places counts places that are taken and given back. As long as nobody waits for one, each of the two is one atomic
// operation, without a lock.
package places

import "sync/atomic"

// Most is the largest number of places that a Count can have. More than that are as good as no bound.
const Most = 1<<29 - 1

// A Count counts the free places, and the calls that have ended on one. Its zero value has no places. It belongs to somebody with a
// mutex and a line of waiters, who closes it before anybody gets in line:
//
//   - While it is open, nobody is in line, and Take and Give are all there is to do.
//   - While it is closed, only who holds the mutex takes places. Everybody else finds that there is none, and asks again under the mutex. Who gives one
//     back is told, and sees to it, under the mutex, that it is handed on; so does everybody else who comes there first.
//
// So a place that is free while somebody waits is his, whoever gets hold of the mutex next.
type Count struct {
	// word is the sum of what is free, which may be below 0, of barred while it is closed, and of ended for each call that has. So
	// its lower half, with a sign, is above 0 exactly if a place can be had at once, and is below half of barred exactly if it is closed.
	word atomic.Int64
}

const (
	barred = -1 << 30
	ended  = 1 << 32
)

// low returns the lower half of word, and whether that says that the count is closed.
func low(word int64) (free int64, closed bool) {
	free = int64(int32(word))
	if free < barred/2 {
		return free - barred, true
	}
	return free, false
}

// Take takes a place if one is free and nobody waits.
func (c *Count) Take() bool {
	for {
		w := c.word.Load()
		if int32(w) <= 0 {
			return false
		}
		if c.word.CompareAndSwap(w, w-1) {
			return true
		}
	}
}

// Give gives a place back, and reports whether somebody may wait for it.
func (c *Count) Give() (awaited bool) { return int32(c.word.Add(1)) < barred/2 }

// End gives the place of a call back that has ended, as Give does.
func (c *Count) End() (awaited bool) { return int32(c.word.Add(ended+1)) < barred/2 }

// Grow changes the number of places by n. Those who wait are to be seen to after it.
func (c *Count) Grow(n int) { c.word.Add(int64(n)) }

// Claim takes a place if one is free, whoever waits. The mutex is held.
func (c *Count) Claim() bool {
	for {
		w := c.word.Load()
		if free, _ := low(w); free <= 0 {
			return false
		}
		if c.word.CompareAndSwap(w, w-1) {
			return true
		}
	}
}

// ClaimOrClose takes a place if one is free, else it closes. The mutex is held, and nobody waits.
func (c *Count) ClaimOrClose() bool {
	for {
		w := c.word.Load()
		next := w + barred
		free, closed := low(w)
		switch {
		case free > 0:
			next = w - 1
		case closed:
			return false
		}
		if c.word.CompareAndSwap(w, next) {
			return free > 0
		}
	}
}

// Close closes the count. The mutex is held, as for Open.
func (c *Count) Close() {
	if _, closed := low(c.word.Load()); !closed {
		c.word.Add(barred) // nobody else closes it meanwhile
	}
}

// Open opens it again. Nobody waits.
func (c *Count) Open() {
	if _, closed := low(c.word.Load()); closed {
		c.word.Add(-barred)
	}
}

// Free returns how many places are free, below 0 if there are fewer than are taken.
func (c *Count) Free() int {
	free, _ := low(c.word.Load())
	return int(free)
}

// Look returns Free, how many of the calls that begun counts are not over, and begun, all at one moment. Whoever adds to begun holds a place.
func (c *Count) Look(begun *atomic.Uint64) (free, inFlight int, calls uint64) {
	for {
		w := c.word.Load()
		calls = begun.Load()
		if c.word.Load() != w {
			continue
		}
		f, closed := low(w)
		over := w - f
		if closed {
			over -= barred
		}
		return int(f), int(uint32(calls) - uint32(over/ended)), calls
	}
}
