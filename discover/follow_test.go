package discover

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A follower reads a source in a goroutine, as a balancer does, and keeps what it was told.
type follower struct {
	t     *testing.T
	ended chan struct{}

	mu     sync.Mutex
	set    map[string]string // addresses by key
	last   map[string]Change // all of it
	log    []string          // what has changed, and errors
	errs   []error
	again  []string // what was said again
	enough bool     // end at the next change
}

func follow(t *testing.T, source iter.Seq2[Change, error]) *follower {
	t.Helper()
	f := &follower{t: t, ended: make(chan struct{}), set: map[string]string{}, last: map[string]Change{}}
	go func() {
		defer close(f.ended)
		for change, err := range source {
			if !f.note(change, err) {
				return
			}
		}
	}()
	return f
}

func (f *follower) note(change Change, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := change.ID()
	addr, known := f.set[key]
	switch {
	case err != nil:
		f.errs = append(f.errs, err)
		if len(f.log) == 0 || f.log[len(f.log)-1] != "error" { // how often is for the tests of pauses
			f.log = append(f.log, "error")
		}
	case change.Remove && !known:
		f.log = append(f.log, "unknown -"+key)
	case change.Remove:
		delete(f.set, key)
		f.log = append(f.log, "-"+key)
	case known && addr == change.Addr && f.last[key] == change:
		f.again = append(f.again, key)
	default:
		f.set[key], f.last[key] = change.Addr, change
		if change.Addr != key {
			key += "@" + change.Addr
		}
		f.log = append(f.log, strings.Replace("+"+lines([]Change{change})[0], change.Addr, key, 1))
	}
	return !f.enough
}

// want compares what was logged since the last want.
func (f *follower) want(log ...string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.log, log) {
		f.t.Errorf("got %q, want %q (errors: %v)", f.log, log, f.errs)
	}
	f.log = nil
}

// err returns the last error.
func (f *follower) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errs) == 0 {
		return nil
	}
	return f.errs[len(f.errs)-1]
}

// wantErr compares the last error.
func (f *follower) wantErr(want string) {
	f.t.Helper()
	if got := f.err(); got == nil || !strings.Contains(got.Error(), want) {
		f.t.Errorf("the last error is %v, want one with %q", got, want)
	}
}

func (f *follower) repeated() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	again := f.again
	f.again = nil
	return again
}

// stop makes the follower end at the next change.
func (f *follower) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enough = true
}

// over reports whether the source has returned.
func (f *follower) over() bool {
	select {
	case <-f.ended:
		return true
	default:
		return false
	}
}

// chance is a source of random numbers that always returns the same fraction.
type chance float64

func (c chance) Uint64() uint64 { return uint64(float64(c) * (1 << 53)) }
