package belfrytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
)

// A trial is one run of one check, on a fresh layer in a bubble of its own. The check runs in the bubble's first goroutine,
// the driver; callers have goroutines of theirs.
type trial struct {
	*suite
	c     *check
	seed  uint64     // of rand, with the check's name
	t     *testing.T // the bubble's
	rand  *rand.Rand // for the driver alone
	inner *inner
	svc   belfry.Service[int, int]
	stops []func()
	last  int // the latest request

	driver  atomic.Pointer[string] // the number of its goroutine
	doing   atomic.Pointer[string] // what the driver is at, for a trial that is stuck
	knocks  atomic.Int32           // how many calls inward make another goroutine use the layer
	knocked atomic.Bool            // one is at it

	mu    sync.Mutex // guards what follows
	ops   []*op
	ends  []context.CancelFunc
	over  bool // contexts end as soon as they begin
	found []violation
}

// trial runs c once and returns what was found wrong, in order of time. A layer that blocks on a mutex stops virtual
// time for good, so the bubble has a goroutine of its own, which is abandoned then.
func (s *suite) trial(t *testing.T, c *check, seed uint64) []violation {
	r := &trial{suite: s, c: c, seed: seed, rand: rand.New(rand.NewPCG(seed, uint64(len(c.name))))}
	over := make(chan any, 1)
	go func() {
		defer func() { over <- recover() }()
		synctest.Test(t, func(t *testing.T) {
			r.t = t
			id := goroutine()
			r.driver.Store(&id)
			r.run()
		})
	}()
	r.watch(over)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}

const (
	stuckFor = 4 // looks, after which nobody will move any more
	tooLong  = time.Minute
)

// watch waits for the end of the bubble, in real time.
func (r *trial) watch(over <-chan any) {
	look := time.NewTicker(r.lookEvery)
	defer look.Stop()
	seen := 0
	for begun := time.Now(); ; {
		select {
		case v := <-over:
			if v != nil {
				r.blame(5, "goroutines were still blocked after all contexts had ended, all room was free and the layer was stopped: %v", v)
			}
			return
		case <-look.C:
		}
		id := r.driver.Load()
		if id == nil {
			continue
		}
		members := bubble(*id)
		if seen++; !stuck(members) {
			seen = 0
		}
		switch {
		case seen >= stuckFor:
			r.stuck("a caller stands at a lock for ever", members)
			return
		case time.Since(begun) > tooLong:
			r.stuck("no end after a minute of real time", members)
			return
		}
	}
}

func (r *trial) stuck(what string, members []string) {
	members = slices.DeleteFunc(members, func(stack string) bool {
		return strings.Contains(stack, "synctest.Run") || strings.Contains(stack, "synctest.testingSynctestTest(")
	})
	r.blame(8, "%s %s\n\n%s", what, *r.doing.Load(), strings.Join(members, "\n\n"))
}

func (r *trial) run() {
	r.step("while setting up")
	r.inner = newInner(r)
	defer r.end()
	r.c.run(r)
}

// build makes the layer, over capacity permits.
func (r *trial) build(capacity int) {
	r.inner.capacity = capacity
	r.svc = r.wrap(r.inner)
}

func (r *trial) wrap(inner belfry.Service[int, int]) belfry.Service[int, int] {
	svc, stop := r.suite.build(r.t, inner)
	if stop != nil {
		r.stops = append(r.stops, stop)
	}
	return svc
}

// end lets go of everything, so that a layer which is right leaves no goroutine.
func (r *trial) end() {
	r.step("at the end")
	r.knocks.Store(0)
	r.mu.Lock()
	r.over = true
	ends := r.ends
	r.mu.Unlock()
	for _, end := range ends {
		end()
	}
	r.inner.abort()
	r.wait()
	r.giveBack()
	for _, stop := range slices.Backward(r.stops) {
		stop()
	}
	r.settle()
}

// giveBack releases what callers still hold.
func (r *trial) giveBack() {
	r.mu.Lock()
	ops := slices.Clone(r.ops)
	r.mu.Unlock()
	for _, o := range ops {
		if o.returned() && o.granted && !o.used {
			r.release(o)
		}
	}
	r.wait()
}

// wait returns when nothing goes on any more but by the clock.
func (r *trial) wait() { synctest.Wait() }

// settle lets a minute pass, in which a layer does what it does by itself.
func (r *trial) settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// step says what the driver is at.
func (r *trial) step(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.doing.Store(&text)
}

// fail records that the rule which this check is about was broken.
func (r *trial) fail(format string, args ...any) { r.failRule(r.c.rule, format, args...) }

// blame is fail, or names rule in the check of all.
func (r *trial) blame(rule int, format string, args ...any) {
	if !r.c.mixed {
		rule = r.c.rule
	}
	r.failRule(rule, format, args...)
}

// failRule records that rule was broken, if that is what this check is about.
func (r *trial) failRule(rule int, format string, args ...any) {
	if r.off[rule] || rule != r.c.rule && !r.c.mixed {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	text := fmt.Sprintf("rule %d: ", rule) + fmt.Sprintf(format, args...)
	r.found = append(r.found, violation{check: r.c, rule: rule, text: text, seed: r.seed})
}

func (r *trial) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.found) > 0
}

// chance is true in one of n cases.
func (r *trial) chance(n int) bool { return r.rand.IntN(n) == 0 }

// kind returns a number below n. It follows the seed, so that a few seeds in a row see all kinds.
func (r *trial) kind(n int) int { return int(r.seed % uint64(n)) }

// between returns a number from lo to hi, both included.
func (r *trial) between(lo, hi int) int { return lo + r.rand.IntN(hi-lo+1) }

// request returns a new one.
func (r *trial) request() int {
	r.last++
	return r.last
}

// unlimited is room that never runs out.
const unlimited = -1

// room returns how many callers the layer can admit when nobody is there, or unlimited.
func (r *trial) room() int {
	if r.traits.has(Late) {
		if r.traits.caps > 0 {
			return r.traits.caps
		}
		return unlimited
	}
	return r.sendRoom()
}

// sendRoom returns how many requests can be on their way at once.
func (r *trial) sendRoom() int {
	if r.traits.caps > 0 {
		return min(r.traits.caps, r.inner.capacity)
	}
	return r.inner.capacity
}

// realClock counts real milliseconds where time is virtual.
type realClock struct{ ticks atomic.Int64 }

func (c *realClock) start() (stop func()) {
	ticker := time.NewTicker(time.Millisecond)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				c.ticks.Add(1)
			case <-done:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(done) }
}
