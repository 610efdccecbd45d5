package belfry_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-go/belfry"
)

// WithFallback asks backup where inner has failed, unless the caller has left. It sees what inner was sent; that
// inner has no room is for the caller to see, or for a Retry around it.
func WithFallback[Req, Res any](inner, backup belfry.Service[Req, Res]) belfry.Service[Req, Res] {
	return belfry.Around(inner, func(ctx context.Context, req Req, next *belfry.Next[Req, Res]) (Res, error) {
		res, err := next.Call(ctx, req)
		if err == nil || ctx.Err() != nil {
			return res, err
		}
		return belfry.Do(ctx, backup, req)
	})
}

// A second service answers where the first has failed.
func ExampleAround_fallback() {
	broken := belfry.Of(func(context.Context, string) (string, error) { return "", errors.New("out of order") })
	stale := belfry.Of(func(_ context.Context, key string) (string, error) { return "yesterday's " + key, nil })
	fmt.Println(belfry.Do(context.Background(), WithFallback(broken, stale), "news"))
	// Output: yesterday's news <nil>
}
