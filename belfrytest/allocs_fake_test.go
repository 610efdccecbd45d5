package belfrytest

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
)

// A fakeT is a testing.TB that is supposed to fail.
type fakeT struct {
	testing.TB
	fake
	logged int
}

func (f *fakeT) Helper()                           {}
func (f *fakeT) Cleanup(c func())                  { f.fake.Cleanup(c) }
func (f *fakeT) Errorf(format string, args ...any) { f.fake.Errorf(format, args...) }
func (f *fakeT) Fatalf(format string, args ...any) { f.fake.Fatalf(format, args...) }
func (f *fakeT) Log(...any)                        { f.logged++ }

var sink [4]*int

// allocating is what rule 9 forbids.
var allocating = breaking(func(b *broken) {
	b.call = func(ctx context.Context, inner belfry.Service[int, int], p belfry.Permit, req int) (int, error) {
		for i := range sink {
			sink[i] = new(int)
		}
		return inner.Call(ctx, p, req)
	}
})

// TestRaceAllocs shows that under the race detector nothing is measured, and that this is said.
func TestRaceAllocs(t *testing.T) {
	f := &fakeT{TB: t}
	got := f.run(func(TB) { Allocs(f, allocating, 0) })
	if raceEnabled && (len(got) != 0 || f.logged != 1) {
		t.Errorf("the test failed with %q and logged %d lines, want none and 1", got, f.logged)
	}
	if !raceEnabled && (len(got) != 1 || f.logged != 0) {
		t.Errorf("the test failed with %q and logged %d lines, want one and none", got, f.logged)
	}
}
