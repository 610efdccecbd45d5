package belfrytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// An ending is how a method of inner comes to its end.
type ending int

const (
	answers ending = iota
	fails          // with an error of its own
	refuses        // with a rejection: in a Call, nothing was sent
	panics
	exits // by runtime.Goexit
)

func (e ending) String() string {
	return [...]string{"answered", "failed", "refused", "panicked", "ended by Goexit"}[e]
}

// A plan says what becomes of a request.
type plan struct {
	ends     []ending      // of the first attempt, the second, …; the last holds for all that follow
	takes    time.Duration // how long, unless its context ends
	gate     chan struct{} // if set, it must be closed before the call ends, unless its context ends
	stubborn bool          // the end of its context does not matter
}

// A try is one attempt of a request that was sent.
type try struct {
	err     error // that Call returned
	dead    bool  // its context was done when it began
	running bool
	ctx     context.Context
}

// A callError is what an attempt that failed returns.
type callError struct{ req, attempt int }

func (e *callError) Error() string {
	return fmt.Sprintf("attempt %d of request %d failed", e.attempt, e.req)
}

var (
	errAcquire = errors.New("acquire of the inner service failed")
	errRefused = errors.New("refused below")
)

const panicText = "belfrytest: a planned panic; should it end the test, a goroutine of the layer has not passed it on (rule 8)"

// plan sets what becomes of req.
func (in *inner) plan(req int, p plan) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.plans[req] = p
}

// failNext plans how the next Acquires end.
func (in *inner) failNext(how ...ending) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.failing = append(in.failing, how...)
}

func (in *inner) tries(req int) []*try {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.attempts[req])
}

// sees returns what a check wants to know, at a moment when nothing goes on.
func (in *inner) sees() (held, running int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.held, in.running
}

// unspent returns how many failures that were planned have not happened.
func (in *inner) unspent() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.failing)
}

// failAlways refuses every Acquire from now on, or no longer.
func (in *inner) failAlways(on bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.failAll = on
	if !on {
		in.failing = nil
	}
}

// burstiest returns the most Acquires there were in one instant.
func (in *inner) burstiest() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.bursts
}

func (in *inner) errorOf(a *try) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return a.err
}

func (in *inner) isRunning(a *try) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return a.running
}

func (in *inner) isClosed() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.closed || in.aborted
}

// gone reports whether the trial is over, and what happens now is nobody's fault.
func (in *inner) gone() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.aborted
}

// order returns the requests in order of their first arrival.
func (in *inner) order() (reqs []int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, req := range in.arrivals {
		if !slices.Contains(reqs, req) {
			reqs = append(reqs, req)
		}
	}
	return reqs
}

// close makes every Acquire fail for good.
func (in *inner) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	for _, turn := range in.waiting {
		close(turn.c)
	}
	in.waiting = nil
}

// abort ends all that waits in inner and all that would.
func (in *inner) abort() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.aborted {
		in.aborted = true
		close(in.stop)
	}
}

// beLenient says whether misuse is judged from now on.
func (in *inner) beLenient(on bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.lenient = on
}

// misuses returns how many times a permit was used that was not good.
func (in *inner) misuses() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.misused
}
