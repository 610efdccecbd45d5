package belfrytest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/belfry-go/belfry"
)

// A Builder makes the layer under test over inner, and returns it with a function that stops what it started (nil if there
// is nothing). Requests are distinct numbers above 0; the answer to n is -n, and a layer has to pass both on as
// they are. t is the bubble's.
type Builder func(t testing.TB, inner belfry.Service[int, int]) (svc belfry.Service[int, int], stop func())

// A Trait says what is particular about a layer, and so which checks of [TestLayer] do not hold for it. Without any,
// a layer is expected to answer for its inner service at once and to add nothing of its own.
type Trait uint64

const (
	// Late layers reserve the inner service inside Call: what Acquire grants says nothing about inner. Without
	// [Caps], their Acquire is not expected to run out of room.
	Late Trait = 1 << iota

	// Reorders is for layers that do not serve waiters first come, first served.
	Reorders

	// Sheds is for layers that refuse where others wait for room. They are still expected to grant what is free.
	Sheds

	// Refuses is for layers that may hold back what is free, by a limit that the suite cannot know: an open breaker, an
	// adaptive limit. They must still give everything back, and wake who waits once nothing else is going on.
	Refuses

	// TimesOut is for layers that end a wait or a call by a clock of their own.
	TimesOut

	// Retries is for layers that may send a request again after an attempt has failed. To acquire for that they wait
	// inside Call.
	Retries

	// Hedges is for layers that may send a request a second time while it is in flight, and whose losing attempts
	// may outlast Call. It implies Retries.
	Hedges

	// Recovers is for layers that do not report a failing Acquire of the inner service, but try again by themselves.
	Recovers

	flags = 8
)

// Caps is the trait of a layer that admits at most n callers at a time, where inner admits more: a limit, or the seats
// of a buffer. n must be above 0; a rate limit has its burst for n, and a minute to fill it up.
func Caps(n int) Trait {
	if n < 1 {
		panic(fmt.Sprintf("belfrytest: Caps(%d): n must be above 0", n))
	}
	return Trait(n) << flags
}

// traits is all that was said about a layer.
type traits struct {
	flags Trait
	caps  int
}

func (ts traits) has(t Trait) bool { return ts.flags&t != 0 }

func join(list []Trait) (ts traits) {
	for _, t := range list {
		ts.flags |= t & (1<<flags - 1)
		if n := int(t >> flags); n > 0 && (ts.caps == 0 || n < ts.caps) {
			ts.caps = n
		}
	}
	if ts.has(Hedges) {
		ts.flags |= Retries
	}
	return ts
}

// TestLayer drives a layer with random operations over a backend that counts, and fails t for every rule of the contract
// that it sees broken, by the rule's number. Each check runs for many seeds in a bubble of its own, so whatever the
// layer does by itself (dial, refill, back off, probe) takes virtual time: build it so that it is done within a minute.
//
// A failure names its seed. Set BELFRYTEST_SEED to it to run just that one, a number of times: the seed decides what
// is done, the scheduler when. With -short there are fewer seeds.
func TestLayer(t *testing.T, build Builder, traits ...Trait) {
	t.Helper()
	s := newSuite(build, traits)
	if text := os.Getenv("BELFRYTEST_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("BELFRYTEST_SEED: %v", err)
		}
		s.base, s.replay = seed, true
	}
	s.run(t)
}

// A suite is all checks over one layer.
type suite struct {
	build  Builder
	traits traits
	base   uint64 // the first seed
	seeds  int
	replay bool      // run seed base alone, again and again
	off    [10]bool  // rules that are not checked; for tests of the suite itself
	only   int       // the one rule that is checked, for the same; 0 for all
	clock  realClock // real time, for inside a bubble

	lockedFor int // milliseconds that a visitor must stand at a lock
}

func newSuite(build Builder, list []Trait) *suite {
	s := &suite{build: build, traits: join(list), base: rand.Uint64N(1 << 53), seeds: 40, lockedFor: 200}
	if testing.Short() {
		s.seeds = 10
	}
	return s
}

// run runs each check as a subtest. When locks are held where they must not be, the other checks would
// hang; when one has failed, the mixture of all would only say it again.
func (s *suite) run(t *testing.T) {
	t.Helper()
	for _, c := range checks {
		if c.mixed && t.Failed() {
			return
		}
		passed := t.Run(c.title(), func(t *testing.T) {
			if v := s.check(t, c); v != nil {
				t.Errorf("%s\n\treplay: BELFRYTEST_SEED=%d go test -run '%s'", v.text, v.seed, t.Name())
			}
		})
		if !passed && c.first {
			return
		}
	}
}

// A violation is what a check has found.
type violation struct {
	check *check
	rule  int
	text  string
	seed  uint64
}

// all runs every check, for the suite's own tests, and stops at the first violation.
func (s *suite) all(t *testing.T) *violation {
	for _, c := range checks {
		if v := s.check(t, c); v != nil {
			return v
		}
	}
	return nil
}

// check runs c for every seed, until it finds something.
func (s *suite) check(t *testing.T, c *check) *violation {
	if s.off[c.rule] || s.only != 0 && s.only != c.rule {
		return nil
	}
	stop := s.clock.start()
	defer stop()
	for i := range s.seeds {
		seed := s.base + uint64(i)
		if s.replay {
			seed = s.base
		}
		if found := s.trial(t, c, seed); len(found) > 0 {
			return &found[0]
		}
	}
	return nil
}
