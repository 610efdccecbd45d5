// Package attempt carries, in a context, what the attempts of one request have to tell each other: which endpoints
// were tried, whether this attempt is a hedge, which must not queue, and whether its answer is to be the last.
//
// A layer that makes several attempts gives all of them contexts over one [Set]; a balancer adds to it what it sends
// the request to, and prefers what is not in it. The innermost set counts. A layer below that may not try again, for
// want of budget, asks all layers above not to do so in its place.
package attempt

import (
	"context"
	"slices"
	"sync/atomic"
)

// A Set holds the endpoints that a request was given to, by identity (a pointer, not nil). The zero Set is empty.
// It is safe for concurrent use.
//
// Each call of a layer that tries again allocates one, and each adds one endpoint to it; so it is small, and has no lock. Who moves state
// from empty to filling writes first, and makes it full; nobody else reads first before that. All others go to more.
type Set struct {
	first any
	more  atomic.Pointer[more] // the latest
	state atomic.Int32

	final atomic.Bool // of the Context that the Set is part of: here is room for it
}

// The states of a Set.
const (
	empty int32 = iota
	filling
	full
)

// A more is an endpoint after the first.
type more struct {
	endpoint any
	before   *more
	n        int // how many they are
}

// Add records that the request was given to endpoint.
func (s *Set) Add(endpoint any) {
	if s.state.CompareAndSwap(empty, filling) {
		s.first = endpoint
		s.state.Store(full)
		return
	}
	m := &more{endpoint: endpoint}
	for {
		m.before, m.n = s.more.Load(), 1
		if m.before != nil {
			m.n += m.before.n
		}
		if s.more.CompareAndSwap(m.before, m) {
			return
		}
	}
}

// Has reports whether the request was given to endpoint before.
func (s *Set) Has(endpoint any) bool {
	if s == nil || s.state.Load() == empty {
		return false
	}
	if s.state.Load() == full && s.first == endpoint {
		return true
	}
	for m := s.more.Load(); m != nil; m = m.before {
		if m.endpoint == endpoint {
			return true
		}
	}
	return false
}

// AppendTo appends to all the endpoints that the request was given to, in that order.
func (s *Set) AppendTo(all []any) []any {
	if s == nil {
		return all
	}
	if s.state.Load() == full {
		all = append(all, s.first)
	}
	n := len(all)
	for m := s.more.Load(); m != nil; m = m.before {
		all = append(all, m.endpoint)
	}
	slices.Reverse(all[n:])
	return all
}

// Len returns how many times the request was given to an endpoint.
func (s *Set) Len() (n int) {
	if s == nil || s.state.Load() == empty {
		return 0
	}
	if s.state.Load() == full {
		n = 1
	}
	if m := s.more.Load(); m != nil {
		n += m.n
	}
	return n
}

type (
	setKey     struct{}
	hedgeKey   struct{}
	contextKey struct{}
)

// A Context is the context of attempts that share its Set; layers embed it in what they allocate for a call anyway.
type Context struct {
	context.Context
	Set Set
}

// Value answers for the set and asks the parent for all else.
func (c *Context) Value(key any) any {
	switch key.(type) {
	case setKey:
		return &c.Set
	case contextKey:
		return c
	}
	return c.Context.Value(key)
}

// Begin forgets what an earlier attempt said about its answer.
func (c *Context) Begin() { c.Set.final.Store(false) }

// Final reports whether [Finalize] was called for the attempt that is being made, or for one inside it.
func (c *Context) Final() bool { return c.Set.final.Load() }

// Finalize asks every layer that ctx is an attempt of not to try again after the answer to this one. It is for
// answers that cannot say so themselves.
func Finalize(ctx context.Context) {
	for {
		c, ok := ctx.Value(contextKey{}).(*Context)
		if !ok {
			return
		}
		c.Set.final.Store(true)
		ctx = c.Context
	}
}

// From returns the set that ctx carries, nil if it is not one of several attempts.
func From(ctx context.Context) *Set {
	s, _ := ctx.Value(setKey{}).(*Set)
	return s
}

// IsKey reports whether key is the one that a context's Value answers with a *Set.
func IsKey(key any) bool {
	_, ok := key.(setKey)
	return ok
}

// Hedge returns ctx marked as an extra attempt, beside one that is still in flight.
func Hedge(ctx context.Context) context.Context {
	return context.WithValue(ctx, hedgeKey{}, true)
}

// IsHedge reports whether ctx is marked so.
func IsHedge(ctx context.Context) bool {
	return ctx.Value(hedgeKey{}) != nil
}

// Detach returns the values of ctx without what attempts tell each other, and without its end: for work that a call has
// started, and that goes on without it. Such work is no attempt of the call's request, and has its own attempts to make.
func Detach(ctx context.Context) context.Context { return detached{context.WithoutCancel(ctx)} }

type detached struct{ context.Context }

func (d detached) Value(key any) any {
	switch key.(type) {
	case setKey, hedgeKey, contextKey:
		return nil
	}
	return d.Context.Value(key)
}
