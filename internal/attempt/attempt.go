// Package attempt carries, in a context, what the attempts of one request have to tell each other: which endpoints
// were tried, whether this attempt is a hedge, which must not queue, and whether its answer is to be the last.
//
// A layer that makes several attempts gives all of them contexts over one [Set]; a balancer adds to it what it sends
// the request to, and prefers what is not in it. The innermost set counts. A layer below that may not try again, for
// want of budget, asks all layers above not to do so in its place.
package attempt

import (
	"context"
	"sync"
	"sync/atomic"
)

// A Set holds the endpoints that a request was given to, by identity (a pointer, not nil). The zero Set is empty.
// It is safe for concurrent use.
type Set struct {
	mu    sync.Mutex
	first any          // most requests are tried once, and need no more
	more  *more        // the others
	n     atomic.Int32 // how many they are, for reading without mu
}

// A more is an endpoint, and those that came after it. A Set is part of what each call allocates, so it has no room for a slice.
type more struct {
	endpoint any
	next     *more
}

// Add records that the request was given to endpoint.
func (s *Set) Add(endpoint any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		s.first = endpoint
	} else {
		end := &s.more
		for *end != nil {
			end = &(*end).next
		}
		*end = &more{endpoint: endpoint}
	}
	s.n.Add(1)
}

// Has reports whether the request was given to endpoint before.
func (s *Set) Has(endpoint any) bool {
	if s.Len() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == endpoint {
		return true
	}
	for m := s.more; m != nil; m = m.next {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		return all
	}
	all = append(all, s.first)
	for m := s.more; m != nil; m = m.next {
		all = append(all, m.endpoint)
	}
	return all
}

// Len returns how many times the request was given to an endpoint.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return int(s.n.Load())
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

	final atomic.Bool
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
func (c *Context) Begin() { c.final.Store(false) }

// Final reports whether [Finalize] was called for the attempt that is being made, or for one inside it.
func (c *Context) Final() bool { return c.final.Load() }

// Finalize asks every layer that ctx is an attempt of not to try again after the answer to this one. It is for
// answers that cannot say so themselves.
func Finalize(ctx context.Context) {
	for {
		c, ok := ctx.Value(contextKey{}).(*Context)
		if !ok {
			return
		}
		c.final.Store(true)
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
