package belfrytest

import (
	"context"
	"fmt"
	"slices"

	"github.com/belfry-go/belfry"
)

// backendService is the side of a Backend that is under test's feet.
type backendService[Req, Res any] struct {
	b *Backend[Req, Res]
}

var _ belfry.Service[int, int] = (*backendService[int, int])(nil)

// Acquire takes a grant, waits for one, or fails as the test has arranged.
func (s *backendService[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	ended := ctx.Err()
	t, permit, err := s.b.enter(ended)
	if t == nil {
		return permit, err
	}
	select {
	case <-t.c:
		return t.permit, t.err
	case <-ctx.Done():
	}
	if s.b.leave(t) {
		return belfry.Permit{}, s.b.refusal("no grant", ctx.Err())
	}
	return t.permit, t.err // answered at the same moment
}

// enter returns an answer, or the turn to wait for.
func (b *Backend[Req, Res]) enter(ended error) (*turn, belfry.Permit, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, belfry.Permit{}, b.refusal("closed", belfry.ErrClosed)
	case len(b.failures) > 0:
		err := b.failures[0]
		b.failures = b.failures[1:]
		return nil, belfry.Permit{}, err
	case b.free > 0:
		return nil, b.grant(), nil
	case ended != nil:
		return nil, belfry.Permit{}, b.refusal("no grant", ended)
	}
	t := &turn{c: make(chan struct{})}
	b.waiting = append(b.waiting, t)
	return t, belfry.Permit{}, nil
}

// leave reports whether t was still waiting.
func (b *Backend[Req, Res]) leave(t *turn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, t)
	if i < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return true
}

// Call hands req to the test and waits for its answer, or for the end of ctx. With a permit that is not good for a call
// it fails the test, and returns ErrSpent.
func (s *backendService[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (res Res, err error) {
	s.b.t.Helper()
	if problem := s.b.spend(permit, false); problem != "" {
		s.b.t.Errorf("rule 2: Call of %v with %s", req, problem)
		return res, belfry.ErrSpent
	}
	r := &Request[Req, Res]{Req: req, t: s.b.t, ctx: ctx, decided: make(chan struct{})}
	if !s.b.arrive(r) {
		return res, s.b.refusal("closed", belfry.ErrClosed)
	}
	defer s.b.depart(r)
	select {
	case <-r.decided:
		return r.do(ctx, req)
	case <-ctx.Done():
		if r.decide(nil) {
			return res, ctx.Err()
		}
		return r.do(ctx, req) // answered at the same moment
	}
}

// Release makes a grant free again.
func (s *backendService[Req, Res]) Release(permit belfry.Permit) {
	s.b.t.Helper()
	if problem := s.b.spend(permit, true); problem != "" {
		s.b.t.Errorf("rule 2: Release of %s", problem)
	}
}

// spend marks permit as used, and says what is wrong with that.
func (b *Backend[Req, Res]) spend(permit belfry.Permit, back bool) (problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g, ok := permit.Value().(*grant)
	switch {
	case permit.Value() == nil:
		return "a permit that was never granted (the zero Permit)"
	case !ok || g.owner != any(b):
		return sprintf("a permit that was granted by another service (it holds a %T)", permit.Value())
	case g.spent:
		return "a permit that was spent already"
	}
	g.spent = true
	b.held--
	if back {
		b.free++
		b.serve()
	}
	return ""
}

func (b *Backend[Req, Res]) arrive(r *Request[Req, Res]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if b.running == nil {
		b.running = make(map[*Request[Req, Res]]struct{})
	}
	b.running[r] = struct{}{}
	b.queue = append(b.queue, r)
	select {
	case b.arrived <- struct{}{}:
	default:
	}
	return true
}

func (b *Backend[Req, Res]) depart(r *Request[Req, Res]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, r)
}

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }
