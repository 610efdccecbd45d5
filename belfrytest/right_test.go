package belfrytest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
)

// The layers here keep all rules.

// A turnstile admits a number of callers; waiters are served first come, first served. Its faults are for the layers that
// break a rule.
type turnstile struct {
	belfry.Service[int, int]
	faults faults
	mu     sync.Mutex
	state  chan turnstileState // holds the one state: a lock that stops no clock
}

type turnstileState struct {
	free  int
	queue []chan struct{}
}

// faults are what can be wrong with a turnstile.
type faults struct {
	leakOnPanic, leakOnError               bool // in Call
	leakOnAcquirePanic, leakOnAcquireError bool
	leakOnCancel, leakLateCancel           bool
	keepOne                                bool // from NoWait
	barge, lifo                            bool
	deafToRelease, deafToCancel            bool
	plainRefusal, namelessRefusal, noCause bool
	lockToLeave                            bool
}

func newTurnstile(n int) Builder { return misbuilt(n, faults{}) }

func (s *turnstile) Acquire(ctx context.Context) (belfry.Permit, error) {
	if err := s.enter(ctx); err != nil {
		return belfry.Permit{}, err
	}
	granted, panicked := false, true
	defer func() {
		if !granted && !(panicked && s.faults.leakOnAcquirePanic) && !(!panicked && s.faults.leakOnAcquireError) {
			s.leave()
		}
	}()
	permit, err := s.Service.Acquire(ctx)
	granted, panicked = err == nil, false
	return permit, err
}

func (s *turnstile) enter(ctx context.Context) error {
	ended := ctx.Err()
	s.mu.Lock()   // which is for one fault only
	s.mu.Unlock() //nolint:staticcheck // it is about who else has it
	st := <-s.state
	least := 1
	if s.faults.keepOne && isNoWait(ctx) {
		least = 2
	}
	if st.free >= least && (len(st.queue) == 0 || ended != nil) {
		st.free--
		s.state <- st
		return nil
	}
	if ended != nil {
		s.state <- st
		return s.refuse(ended)
	}
	turn := make(chan struct{}, 1)
	st.queue = append(st.queue, turn)
	s.state <- st
	done := ctx.Done()
	if s.faults.deafToCancel {
		done = nil
	}
	select {
	case <-turn:
		return s.enterAgain(ctx)
	case <-done:
		return s.giveUp(ctx, turn)
	}
}

// enterAgain is for who has been called, but must still take the place.
func (s *turnstile) enterAgain(ctx context.Context) error {
	if !s.faults.barge {
		return nil
	}
	st := <-s.state
	if st.free > 0 {
		st.free--
		s.state <- st
		return nil
	}
	turn := make(chan struct{}, 1)
	st.queue = append([]chan struct{}{turn}, st.queue...)
	s.state <- st
	select {
	case <-turn:
		return s.enterAgain(ctx)
	case <-ctx.Done():
		return s.giveUp(ctx, turn)
	}
}

func (s *turnstile) giveUp(ctx context.Context, turn chan struct{}) error {
	if s.faults.lockToLeave {
		s.mu.Lock()
		_ = ctx.Err()
		s.mu.Unlock()
	}
	ended := ctx.Err()
	if s.faults.leakOnCancel {
		return s.refuse(ended)
	}
	st := <-s.state
	for i, other := range st.queue {
		if other == turn {
			st.queue = append(st.queue[:i:i], st.queue[i+1:]...)
			s.state <- st
			return s.refuse(ended)
		}
	}
	s.state <- st
	if s.faults.leakLateCancel {
		return s.refuse(ended)
	}
	return s.enterAgain(ctx) // called at the same moment
}

func (s *turnstile) refuse(err error) error {
	notReady := errors.Is(err, belfry.ErrNotReady)
	switch {
	case s.faults.plainRefusal && !notReady, s.faults.namelessRefusal && notReady:
		return err
	case s.faults.noCause && !notReady:
		return &belfry.Rejection{Layer: "turnstile", Reason: "left"}
	}
	return &belfry.Rejection{Layer: "turnstile", Err: err}
}

func (s *turnstile) leave() {
	st := <-s.state
	switch last := len(st.queue) - 1; {
	case last < 0:
		st.free++
	case s.faults.lifo:
		st.queue[last] <- struct{}{}
		st.queue = st.queue[:last]
	default:
		if s.faults.barge {
			st.free++
		}
		st.queue[0] <- struct{}{}
		st.queue = st.queue[1:]
	}
	s.state <- st
}

func (s *turnstile) Call(ctx context.Context, permit belfry.Permit, req int) (_ int, err error) {
	panicked := true
	defer func() {
		if !(panicked && s.faults.leakOnPanic) && !(err != nil && s.faults.leakOnError) {
			s.leave()
		}
	}()
	res, err := s.Service.Call(ctx, permit, req)
	panicked = false
	return res, err
}

func (s *turnstile) Release(permit belfry.Permit) {
	defer func() {
		if s.faults.deafToRelease {
			st := <-s.state
			st.free++
			s.state <- st
			return
		}
		s.leave()
	}()
	s.Service.Release(permit)
}

func passThrough(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
	return belfry.Around(inner, func(ctx context.Context, req int, next *belfry.Next[int, int]) (int, error) {
		return next.Call(ctx, req)
	}), nil
}

// late reserves inside Call.
type late struct{ belfry.Service[int, int] }

func newLate(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
	return late{inner}, nil
}

func (late) Acquire(context.Context) (belfry.Permit, error) { return belfry.Permit{}, nil }
func (late) Release(belfry.Permit)                          {}

func (l late) Call(ctx context.Context, _ belfry.Permit, req int) (int, error) {
	permit, err := belfry.AcquireLate(ctx, "late", l.Service)
	if err != nil {
		return 0, err
	}
	return l.Service.Call(ctx, permit, req)
}

// seated is late, and has seats.
func seated(n int) Builder {
	return func(t testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		l, _ := newLate(t, inner)
		return newTurnstile(n)(t, l)
	}
}

// refusing refuses where others wait.
type refusing struct{ belfry.Service[int, int] }

func newRefusing(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
	return refusing{inner}, nil
}

func (s refusing) Acquire(ctx context.Context) (belfry.Permit, error) {
	permit, err := s.Service.Acquire(belfry.NoWait(ctx))
	if err != nil {
		return belfry.Permit{}, belfry.Refuse("refusing", err)
	}
	return permit, nil
}

// again tries a second time.
type again struct{ belfry.Service[int, int] }

func newAgain(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
	return again{inner}, nil
}

func (s again) Call(ctx context.Context, permit belfry.Permit, req int) (int, error) {
	res, err := s.Service.Call(ctx, permit, req)
	if err == nil || errors.Is(err, belfry.ErrRejected) || ctx.Err() != nil {
		return res, err
	}
	second, refused := belfry.AcquireLate(ctx, "again", s.Service)
	if refused != nil {
		return 0, belfry.Sent(errors.Join(err, refused))
	}
	res, latest := s.Service.Call(ctx, second, req)
	if errors.Is(latest, belfry.ErrRejected) {
		latest = belfry.Sent(errors.Join(err, latest))
	}
	return res, latest
}

// patient does not report that the inner Acquire failed, but asks again after a second.
type patient struct{ belfry.Service[int, int] }

func newPatient(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
	return patient{inner}, nil
}

func (s patient) Acquire(ctx context.Context) (belfry.Permit, error) {
	for {
		permit, err := s.Service.Acquire(ctx)
		if err == nil || ctx.Err() != nil {
			return permit, belfry.Refuse("patient", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return belfry.Permit{}, &belfry.Rejection{Layer: "patient", Err: ctx.Err()}
		}
	}
}

// hasty bounds the wait and the call.
type hasty struct{ belfry.Service[int, int] }

func newHasty(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
	return hasty{inner}, nil
}

func (s hasty) Acquire(ctx context.Context) (belfry.Permit, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	permit, err := s.Service.Acquire(ctx)
	return permit, belfry.Refuse("hasty", err)
}

func (s hasty) Call(ctx context.Context, permit belfry.Permit, req int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Millisecond)
	defer cancel()
	return s.Service.Call(ctx, permit, req)
}

// hedging sends a second attempt after a while, if there is room, and takes the first that succeeds.
type hedging struct{ belfry.Service[int, int] }

func newHedging(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
	return hedging{inner}, nil
}

func (s hedging) Call(ctx context.Context, permit belfry.Permit, req int) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := apart(func() (int, error) { return s.Service.Call(ctx, permit, req) })
	timer := time.NewTimer(3 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-first.done:
		return first.result()
	case <-timer.C:
	}
	if ctx.Err() != nil {
		<-first.done
		return first.result()
	}
	extra, err := s.Service.Acquire(belfry.NoWait(ctx))
	if err != nil {
		<-first.done
		return first.result()
	}
	second := apart(func() (int, error) { return s.Service.Call(ctx, extra, req) })
	winner, loser := first, second
	select {
	case <-first.done:
	case <-second.done:
		winner, loser = second, first
	}
	if !winner.succeeded() {
		<-loser.done
		if loser.succeeded() || errors.Is(winner.err, belfry.ErrRejected) {
			winner = loser
		}
	}
	return winner.result()
}

// tripping refuses for a second after a failure.
type tripping struct {
	belfry.Service[int, int]
	until atomic.Int64
}

func newTripping(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
	return &tripping{Service: inner}, nil
}

func (s *tripping) Acquire(ctx context.Context) (belfry.Permit, error) {
	if left := time.Until(time.Unix(0, s.until.Load())); left > 0 {
		return belfry.Permit{}, &belfry.Rejection{Layer: "tripping", RetryAfter: left, Err: belfry.ErrNotReady}
	}
	return s.Service.Acquire(ctx)
}

func (s *tripping) Call(ctx context.Context, permit belfry.Permit, req int) (int, error) {
	res, err := s.Service.Call(ctx, permit, req)
	if err != nil && !errors.Is(err, belfry.ErrRejected) {
		s.until.Store(time.Now().Add(time.Second).UnixNano())
	}
	return res, err
}

// dialling has to dial first, and does so by itself once asked.
type dialling struct {
	belfry.Service[int, int]
	begin sync.Once
	up    chan struct{}
}

func newDialling(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
	return &dialling{Service: inner, up: make(chan struct{})}, nil
}

func (s *dialling) Acquire(ctx context.Context) (belfry.Permit, error) {
	s.begin.Do(func() { time.AfterFunc(time.Second, func() { close(s.up) }) })
	select {
	case <-s.up:
		return s.Service.Acquire(ctx)
	default:
	}
	select {
	case <-s.up:
		return s.Service.Acquire(ctx)
	case <-ctx.Done():
		return belfry.Permit{}, &belfry.Rejection{Layer: "dialling", Err: ctx.Err()}
	}
}

var rightLayers = []struct {
	name   string
	build  Builder
	traits []Trait
}{
	{"pass-through", passThrough, nil},
	{"turnstile of 1", newTurnstile(1), []Trait{Caps(1)}},
	{"turnstile of 3", newTurnstile(3), []Trait{Caps(3)}},
	{"last come, first served", misbuilt(2, faults{lifo: true}), []Trait{Caps(2), Reorders}},
	{"late", newLate, []Trait{Late}},
	{"late with seats", seated(4), []Trait{Late, Caps(4)}},
	{"refusing", newRefusing, []Trait{Sheds}},
	{"tripping", newTripping, []Trait{Refuses}},
	{"again", newAgain, []Trait{Retries}},
	{"hedging", newHedging, []Trait{Hedges}},
	{"hasty", newHasty, []Trait{TimesOut}},
	{"patient", newPatient, []Trait{Recovers}},
	{"dialling", newDialling, nil},
}

// TestRight shows that the suite passes layers which keep all rules.
func TestRight(t *testing.T) {
	for _, layer := range rightLayers {
		t.Run(layer.name, func(t *testing.T) {
			s := newSuite(layer.build, layer.traits)
			s.seeds = 15
			s.run(t)
		})
	}
}

// TestRightOver shows the same of stacks of them.
func TestRightOver(t *testing.T) {
	over := func(outer, inner Builder) Builder {
		return func(t testing.TB, svc belfry.Service[int, int]) (belfry.Service[int, int], func()) {
			svc, _ = inner(t, svc)
			return outer(t, svc)
		}
	}
	for _, outer := range rightLayers {
		for _, inner := range rightLayers {
			s := newSuite(over(outer.build, inner.build), append(slices.Clip(outer.traits), inner.traits...))
			switch own := join(outer.traits); {
			case own.has(Late):
				s.traits.caps = own.caps // the room inside is not seen from above
			case s.traits.has(Late):
				continue // late, under something that is not
			case own.has(Recovers) && (s.traits.has(Sheds) || s.traits.has(Refuses)):
				continue // who polls is overtaken
			}
			s.seeds = 1
			if v := s.all(t); v != nil {
				t.Errorf("%s over %s: seed %d: %s", outer.name, inner.name, v.seed, v.text)
			}
		}
	}
}

// TestTraits shows that each trait is needed where it is given.
func TestTraits(t *testing.T) {
	for _, layer := range rightLayers {
		for i := range layer.traits {
			if layer.traits[0] == Late && i > 0 {
				continue // Caps asks more of a late layer
			}
			rest := slices.Delete(slices.Clone(layer.traits), i, i+1)
			if v := find(t, newSuite(layer.build, rest)); v == nil {
				t.Errorf("the suite passes %q without its trait number %d", layer.name, i)
			}
		}
	}
}
