package belfry

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-go/belfry/internal/affinity"
	"github.com/belfry-go/belfry/internal/attempt"
)

// NoWait returns a context under which Acquire does not wait: it grants what is free and spoken for by no waiter, or
// fails with an error that Is [ErrNotReady]. The context is done from the start and its Err is ErrNotReady, so
// whatever respects a context refuses at once, and whatever derives from it can be recognised by
// errors.Is(ctx.Err(), ErrNotReady).
//
// It is for Acquire and [Reserve]; a Call under it would find its context done (see [TryDo]). Of ctx it keeps no value but
// the set of endpoints that earlier attempts of this request were given to, and the key of the request (balance.WithKey). NoWait of a context that is
// NoWait already returns it unchanged. It does not allocate, except once for a request that an endpoint was given before, or that has a key.
func NoWait(ctx context.Context) context.Context {
	if ctx.Value(markKey{}) != nil && errors.Is(ctx.Err(), ErrNotReady) { // in this order: Err of a deadline may read the clock
		return ctx
	}
	tried := attempt.From(ctx)
	key, keyed := affinity.Of(ctx)
	if tried.Len() == 0 {
		if !keyed {
			return now
		}
		tried = nil
	}
	return &noWait{tried: tried, key: key, keyed: keyed}
}

// markKey is what contexts made of a noWait have a value for.
type markKey struct{}

// A noWait is done before it begins.
type noWait struct {
	tried *attempt.Set
	key   string
	keyed bool
}

var (
	now     context.Context = &noWait{}
	already                 = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
)

func (*noWait) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*noWait) Done() <-chan struct{}       { return already }
func (*noWait) Err() error                  { return ErrNotReady }

func (n *noWait) Value(key any) any {
	if _, ok := key.(markKey); ok {
		return n
	}
	if n.tried != nil && attempt.IsKey(key) {
		return n.tried
	}
	if n.keyed && affinity.IsKey(key) {
		return n.key
	}
	return nil
}

func (*noWait) String() string { return "belfry.NoWait" }
