package belfrytest

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
)

// The layers here keep all rules.

// A turnstile admits a number of callers; waiters are served first come, first served.
type turnstile struct {
	belfry.Service[int, int]
	state chan turnstileState // holds the one state: a lock that stops no clock
}

type turnstileState struct {
	free  int
	queue []chan struct{}
}

func newTurnstile(n int) Builder {
	return func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		s := &turnstile{Service: inner, state: make(chan turnstileState, 1)}
		s.state <- turnstileState{free: n}
		return s, nil
	}
}

func (s *turnstile) Acquire(ctx context.Context) (belfry.Permit, error) {
	if err := s.enter(ctx); err != nil {
		return belfry.Permit{}, err
	}
	granted := false
	defer func() {
		if !granted {
			s.leave()
		}
	}()
	permit, err := s.Service.Acquire(ctx)
	granted = err == nil
	return permit, err
}

func (s *turnstile) enter(ctx context.Context) error {
	ended := ctx.Err()
	st := <-s.state
	if st.free > 0 {
		st.free--
		s.state <- st
		return nil
	}
	if ended != nil {
		s.state <- st
		return &belfry.Rejection{Layer: "turnstile", Err: ended}
	}
	turn := make(chan struct{}, 1)
	st.queue = append(st.queue, turn)
	s.state <- st
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		return s.giveUp(turn, ctx)
	}
}

func (s *turnstile) giveUp(turn chan struct{}, ctx context.Context) error {
	ended := ctx.Err()
	st := <-s.state
	for i, other := range st.queue {
		if other == turn {
			st.queue = append(st.queue[:i:i], st.queue[i+1:]...)
			s.state <- st
			return &belfry.Rejection{Layer: "turnstile", Err: ended}
		}
	}
	s.state <- st
	return nil // admitted at the same moment
}

func (s *turnstile) leave() {
	st := <-s.state
	if len(st.queue) > 0 {
		st.queue[0] <- struct{}{}
		st.queue = st.queue[1:]
	} else {
		st.free++
	}
	s.state <- st
}

func (s *turnstile) Call(ctx context.Context, permit belfry.Permit, req int) (int, error) {
	defer s.leave()
	return s.Service.Call(ctx, permit, req)
}

func (s *turnstile) Release(permit belfry.Permit) {
	defer s.leave()
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
