package belfrytest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A fake is a TB that is supposed to fail.
type fake struct {
	mu       sync.Mutex
	errors   []string
	cleanups []func()
}

func (f *fake) Helper() {}

func (f *fake) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fake) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *fake) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

// run runs test as package testing does, and returns what it failed with.
func (f *fake) run(test func(t TB)) []string {
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(f)
	}()
	<-done
	for _, c := range slices.Backward(f.cleanups) {
		c()
	}
	return f.errors
}

// wantFailure runs test on a fake, and fails t unless it fails exactly once for each of want, with a message that contains it.
func wantFailure(t *testing.T, test func(t TB), want ...string) {
	t.Helper()
	got := new(fake).run(test)
	if len(got) != len(want) {
		t.Fatalf("the test failed with %q, want %q", got, want)
	}
	for i := range got {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("the test failed with %q, want %q", got[i], want[i])
		}
	}
}
