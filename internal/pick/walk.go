package pick

import (
	"math/bits"
	"math/rand/v2"
)

// A walk goes once over the numbers below n, in an order that is drawn for it. In the order of the numbers, what comes after some that have no room would
// always be the same, and would get the calls of all of them.
//
// The order is a permutation of the numbers below the next power of two, of which those that are not below n are passed over. It is put together of steps
// that can be undone: a product with an odd number, a sum, the upper half of the bits onto the lower. Four rounds of them make the first as
// likely as any other, and pairs nearly so, also of few.
type walk struct {
	word        uint64 // what was drawn; 0 before it begins
	n, at, mask uint32
	half        uint8
}

// begin begins a walk, unless it has begun.
func (w *walk) begin(random rand.Source, n int) {
	if w.word == 0 {
		width := bits.Len(uint(max(n-1, 0)))
		*w = walk{word: random.Uint64() | 1, n: uint32(n), mask: 1<<width - 1, half: uint8(width+1) / 2}
	}
}

// next returns the next number, None after the last.
func (w *walk) next() int {
	for w.at <= w.mask {
		i := w.scatter(w.at)
		w.at++
		if i < w.n {
			return int(i)
		}
	}
	return None
}

func (w *walk) scatter(x uint32) uint32 {
	for shift := 0; shift < 64; shift += 16 {
		key := bits.RotateLeft64(w.word, shift)
		x = (x*(uint32(key)|1) + uint32(key>>40)) & w.mask
		x ^= x >> w.half
	}
	return x
}

// again begins anew, where the walk began.
func (w *walk) again() { w.at = 0 }
