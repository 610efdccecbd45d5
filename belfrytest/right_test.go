package belfrytest

import (
	"context"
	"errors"
	"testing"

	"github.com/belfry-go/belfry"
)

// The layers here keep all rules.

// A turnstile admits a number of callers; waiters are served first come, first served. Its faults are for the layers that
// break a rule.
type turnstile struct {
	belfry.Service[int, int]
	faults faults
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

func TestRight(t *testing.T) {
	for _, layer := range []struct {
		name   string
		build  Builder
		traits []Trait
	}{
		{"pass-through", passThrough, nil},
		{"turnstile of 1", newTurnstile(1), []Trait{Caps(1)}},
		{"turnstile of 3", newTurnstile(3), []Trait{Caps(3)}},
		{"late", newLate, []Trait{Late}},
		{"late with seats", seated(4), []Trait{Late, Caps(4)}},
		{"refusing", newRefusing, []Trait{Sheds}},
	} {
		t.Run(layer.name, func(t *testing.T) { TestLayer(t, layer.build, layer.traits...) })
	}
}
