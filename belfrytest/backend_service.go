package belfrytest

import (
	"context"
	"slices"

	"github.com/belfry-go/belfry"
)

// backendService is the side of a Backend that is under the test's feet.
type backendService[Req, Res any] struct {
	b *Backend[Req, Res]
}

var _ belfry.Service[int, int] = (*backendService[int, int])(nil)

// Acquire takes a grant, waits for one, or fails as the test has arranged.
func (s *backendService[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	ended := ctx.Err()
	t, permit, err := s.b.enter(ended, newGrant(s.b))
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
func (b *Backend[Req, Res]) enter(ended error, g *grant) (*turn, belfry.Permit, error) {
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
		return nil, b.grant(g), nil
	case ended != nil:
		return nil, belfry.Permit{}, b.refusal("no grant", ended)
	}
	t := &turn{c: make(chan struct{}), grant: g}
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
		s.b.errorf("rule 2: Call of %v with %s", req, problem)
		return res, belfry.ErrSpent
	}
	r := &Request[Req, Res]{Req: req, b: s.b, ctx: ctx, decided: make(chan struct{})}
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
		s.b.errorf("rule 2: Release of %s", problem)
	}
}

// spend marks permit as used, and says what is wrong with that.
func (b *Backend[Req, Res]) spend(permit belfry.Permit, back bool) (problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g, problem := spend(permit, b)
	if problem != "" {
		return problem
	}
	delete(b.granted, g)
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
	b.running[r] = struct{}{}
	b.queue = append(b.queue, r)
	b.signal()
	return true
}

func (b *Backend[Req, Res]) depart(r *Request[Req, Res]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, r)
}
