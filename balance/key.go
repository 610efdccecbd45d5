package balance

import (
	"context"

	"github.com/belfry-go/belfry/internal/affinity"
	"github.com/belfry-go/belfry/internal/pick"
)

// WithKey returns ctx with the key of the request that is to be made under it: a user, a session, the name of what is cached. A [Balancer] with
// Config.ByKey sends all requests of a key to the same endpoint, as long as that has room and no more to do than 1.25 times the mean; else to
// the next in the order of that key, and so on.
//
// The key is a hint. It does not count for a caller that had to wait, because no endpoint had room: that one takes what comes first. Layers pass it on
// with the context, and [belfry.NoWait] keeps it. It is looked at in Acquire, so a permit that was acquired under one key is good for a request of
// another, which then goes where the first would have gone.
func WithKey(ctx context.Context, key string) context.Context { return affinity.With(ctx, key) }

// keyOf returns a hash of the key in ctx, if keys count.
func (b *Balancer[Req, Res]) keyOf(ctx context.Context) (hash uint64, ok bool) {
	if !b.cfg.ByKey {
		return 0, false
	}
	key, ok := affinity.Of(ctx)
	return pick.HashOf(key), ok
}
