//go:build !race

package belfrytest

import (
	"context"
	"strings"
	"testing"

	"github.com/belfry-go/belfry"
)

func TestAllocsPassThrough(t *testing.T) {
	Allocs(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		return &broken{Service: inner}, nil
	}, 0)
	Allocs(t, newTurnstile(2), 0)
	Allocs(t, passThrough, 1)
}

func TestAllocsBroken(t *testing.T) {
	wantAllocsFailure(t, passThrough, 0, "rule 9: a successful call allocates 1 times, want at most 0")
	wantAllocsFailure(t, allocating, 3, "rule 9: a successful call allocates 4 times, want at most 3")
}

func TestAllocsOfFailure(t *testing.T) {
	wantAllocsFailure(t, breaking(func(b *broken) {
		b.call = func(context.Context, inside, permit, int) (int, error) { return 0, errTest }
	}), 0, "want a success")
}

func wantAllocsFailure(t *testing.T, build Builder, n float64, want string) {
	t.Helper()
	f := &fakeT{TB: t}
	got := f.run(func(TB) { Allocs(f, build, n) })
	if len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("the test failed with %q, want %q", got, want)
	}
}
