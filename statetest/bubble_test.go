// Package statetest holds tests that do at random what may be done to a part of belfry, and compare it with a model so simple that
// one can see that it is right. They are a module of their own because the core requires nothing, tests included.
package statetest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

var errBoom = errors.New("boom")

// check runs f for many random sequences, in a bubble of virtual time. f's actions end with synctest.Wait, so a sequence that fails
// fails again, and rapid can make it shorter. What f has begun ends with ctx. The bubble is around all sequences, because rapid
// ends one by a panic, which must reach it on the goroutine that it began on.
func check(t *testing.T, f func(t *rapid.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(undated{t}, func(rt *rapid.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer synctest.Wait()
			defer cancel()
			f(rt, ctx)
		})
	})
}

// An undated test does not say when its time is over, which a bubble would not allow.
type undated struct{ rapid.TB }

// pick returns one of list by chance, and skips the action if there is none.
func pick[T any](t *rapid.T, list []T) (int, T) {
	if len(list) == 0 {
		t.Skip("nothing to pick from")
	}
	i := rapid.IntRange(0, len(list)-1).Draw(t, "which")
	return i, list[i]
}

// A chance is a source of random numbers that always returns the same fraction.
type chance float64

func (c chance) Uint64() uint64 { return uint64(float64(c) * (1 << 53)) }
