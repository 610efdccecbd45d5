package belfrytest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
)

// A Builder makes the layer under test over inner, and returns it with a function that stops what it started (nil if there
// is nothing). Requests are distinct numbers above 0; the answer to n is -n, and a layer has to pass both on as
// they are. t is the bubble's: a builder, or a stop function that finds something left behind, may fail it.
type Builder func(t testing.TB, inner belfry.Service[int, int]) (svc belfry.Service[int, int], stop func())

// A Trait says what is particular about a layer, and so which checks of [TestLayer] do not hold for it. Without any,
// a layer is expected to have as much room as its inner service, to wait for it as long as the context allows, and
// to send each request once. Several traits are passed one by one; a stack has those of all its layers.
type Trait uint64

const (
	// Late is for layers that reserve the inner service inside Call. What they admit is not compared with the room of the
	// inner service: without [Caps] Acquire is not expected to run out of room at all, and the checks of what NoWait is
	// granted are left out. In exchange, such a layer must send nothing under a context that was done before Call.
	Late Trait = 1 << iota

	// Reorders is for layers that do not serve waiters first come, first served. The order is not checked.
	Reorders

	// Sheds is for layers that refuse where others wait. A refusal need not have a reason in its context; at rest, all that
	// is free must still be granted.
	Sheds

	// Refuses is for layers that may hold back what is free, by a limit that the suite cannot know: an open breaker, an
	// adaptive limit. A refusal needs no reason, and how much is granted at rest has no lower bound.
	// What was reserved in the inner service must still be given back, and who waits must get on once all is free.
	Refuses

	// TimesOut is for layers that end a wait or a call by a clock of their own, at whatever moment. The checks do not let time
	// pass while somebody waits, and an error may be context.DeadlineExceeded where the caller's context goes on.
	TimesOut

	// Retries is for layers that may send a request again after an attempt has failed. More than one attempt
	// is no double use; the error must be that of the attempt which was sent last. In exchange, none may be sent once Call's
	// context is done.
	Retries

	// Hedges is for layers that may send a request again while it is in flight. It implies Retries; the error may be
	// that of any attempt, and attempts that lost, with their contexts, may outlast Call.
	Hedges

	// Recovers is for layers that ask again by themselves when Acquire of the inner service has failed. Its error need
	// not come out, and that the inner service has closed need not be noticed.
	Recovers

	flags = 8
)

// Caps is the trait of a layer that admits at most n callers at a time, even if the inner service has more room: a limit,
// or the seats of a buffer. It is expected to admit exactly so many, and n of two is the smaller. n must be above 0; a
// rate limit has its burst for n, and a minute to fill up.
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

// TestLayer drives a layer over a backend that counts its permits, and fails t for every rule of the contract that it
// sees broken, by the rule's number. Each check is a subtest, so -run can pick a rule:
//
//   - rule 1: eight callers at once, and permits used in another order than granted, do not mix anything up.
//   - rule 2: every permit is spent once, by calls that end well, fail, are refused below, panic, exit, are cancelled, or begin
//     with a context that is done; by Release; for permits that remember something and for zero ones; and by the layer
//     over itself, which must tell its own permits from the inner ones.
//   - rule 3: NoWait, also through contexts derived from it, never waits, overtakes nobody, and is granted all that is
//     free and no more; who waits gets what becomes free; nothing else is refused; nothing is sent too late.
//   - rule 4: an Acquire that was cancelled, also at the moment of its grant, that failed, panicked, exited or was refused leaves
//     nothing reserved; waiters are served first come, first served.
//   - rule 5: the end of a context ends the wait, and reaches the inner Call; values arrive; Acquire's context has no say in
//     the call; no context is used, and no inner Call runs, when the method has returned.
//   - rule 6: after an error things go on; a failing Acquire is not repeated without a pause; ErrClosed is final, and passed on.
//   - rule 7: what was not sent is a Rejection that names a layer and keeps its cause; what was sent is not, and
//     keeps the error of the attempt.
//   - rule 8: another goroutine can use the layer (and its Stats, if it has that method) whenever it is inside the inner service or a
//     method of a context, and while a caller waits; a panic or Goexit below is no success.
//   - all rules: eight callers do everything that is allowed, at random.
//
// Rule 9 is for [Allocs]. What cannot be seen from outside is not checked: that permits are not pooled, and that no lock
// is held in callbacks of the layer's own.
//
// Each check runs for many seeds in a synctest bubble of its own, so whatever a layer does by itself (dial, refill,
// back off, probe) takes virtual time: build it so that a minute is enough. A goroutine that is left when the layer was stopped
// is a failure. A failure ends with its seed: set BELFRYTEST_SEED to it to run just that one, a number of
// times, because the seed decides what is done, but the scheduler in which order. With -short there are fewer seeds.
func TestLayer(t *testing.T, build Builder, traits ...Trait) {
	t.Helper()
	s := newSuite(build, traits)
	if err := s.replaySeed(os.Getenv("BELFRYTEST_SEED")); err != nil {
		t.Fatalf("BELFRYTEST_SEED: %v", err)
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

	lockedFor int           // milliseconds that a visitor must stand at a lock
	lookEvery time.Duration // at a trial that lasts
}

func newSuite(build Builder, list []Trait) *suite {
	s := &suite{build: build, traits: join(list), base: rand.Uint64N(1 << 53), seeds: 40, lockedFor: 200, lookEvery: 250 * time.Millisecond}
	if testing.Short() {
		s.seeds = 10
	}
	return s
}

// replaySeed restricts the suite to one seed, if text is one.
func (s *suite) replaySeed(text string) (err error) {
	if text != "" {
		s.replay = true
		s.base, err = strconv.ParseUint(text, 10, 64)
	}
	return err
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
		failed := t.Failed()
		if found := s.trial(t, c, seed); len(found) > 0 {
			return &found[0]
		}
		if !failed && t.Failed() {
			return &violation{check: c, rule: c.rule, seed: seed, text: "the test was failed by the builder, or by what it returned"}
		}
	}
	return nil
}
