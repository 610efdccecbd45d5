package belfrytest

import (
	"context"
	"sync"

	"github.com/belfry-go/belfry"
)

// Strict returns inner with permits of its own, each good for one use. A service whose permits remember nothing, or
// share what they remember, cannot notice that one is used twice or belongs to another; this one does, and fails t
// by rule 2. It fails t as well if a permit is left when the test ends. Such a use goes no further: Call
// returns [belfry.ErrSpent].
func Strict[Req, Res any](t TB, inner belfry.Service[Req, Res]) belfry.Service[Req, Res] {
	t.Helper()
	s := &strict[Req, Res]{t: t, inner: inner, held: make(map[*grant]belfry.Permit)}
	t.Cleanup(s.finish)
	return s
}

type strict[Req, Res any] struct {
	t     TB
	inner belfry.Service[Req, Res]

	mu    sync.Mutex
	held  map[*grant]belfry.Permit // and inner's permit for each
	ended bool
}

func (s *strict[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	permit, err := s.inner.Acquire(ctx)
	if err != nil {
		return belfry.Permit{}, err
	}
	g := newGrant(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[g] = permit
	return belfry.NewPermit(g), nil
}

func (s *strict[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (res Res, err error) {
	s.t.Helper()
	own, problem := s.spend(permit)
	if problem != "" {
		s.errorf("rule 2: Call of %v with %s", req, problem)
		return res, belfry.ErrSpent
	}
	return s.inner.Call(ctx, own, req)
}

func (s *strict[Req, Res]) Release(permit belfry.Permit) {
	s.t.Helper()
	own, problem := s.spend(permit)
	if problem != "" {
		s.errorf("rule 2: Release of %s", problem)
		return
	}
	s.inner.Release(own)
}

func (s *strict[Req, Res]) spend(permit belfry.Permit) (own belfry.Permit, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, problem := spend(permit, s)
	if problem != "" {
		return belfry.Permit{}, problem
	}
	own = s.held[g]
	delete(s.held, g)
	return own, ""
}

func (s *strict[Req, Res]) errorf(format string, args ...any) {
	s.t.Helper()
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if !ended {
		s.t.Errorf(format, args...)
	}
}

func (s *strict[Req, Res]) finish() {
	s.t.Helper()
	quiet()
	s.mu.Lock()
	s.ended = true
	held := make(map[*grant]struct{})
	for g := range s.held {
		held[g] = struct{}{}
	}
	s.mu.Unlock()
	for _, problem := range leaked(held) {
		s.t.Errorf("%s", problem)
	}
}
