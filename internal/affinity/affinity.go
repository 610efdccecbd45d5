// Package affinity carries, in a context, the key of a request: requests of the same key are to go to the same endpoint, if that is possible.
// It is a hint. A context that keeps nothing else of its parent keeps it.
package affinity

import (
	"context"
	"sync/atomic"
)

type contextKey struct{}

// used says that there was a key, ever. Most programs have none, and then nobody need look for it.
var used atomic.Bool

// With returns ctx with key.
func With(ctx context.Context, key string) context.Context {
	if !used.Load() {
		used.Store(true)
	}
	return context.WithValue(ctx, contextKey{}, key)
}

// Of returns the key that ctx carries, and whether it carries one.
func Of(ctx context.Context) (key string, ok bool) {
	if !used.Load() {
		return "", false
	}
	key, ok = ctx.Value(contextKey{}).(string)
	return key, ok
}

// IsKey reports whether key is the one that a context's Value answers with the key of the request.
func IsKey(key any) bool {
	_, ok := key.(contextKey)
	return ok
}
