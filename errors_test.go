package belfry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
)

func TestErrors(t *testing.T) {
	for _, err := range []error{belfry.ErrNotReady, belfry.ErrClosed, &belfry.Rejection{Layer: "x"}} {
		if !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("%v does not match ErrRejected", err)
		}
	}
	if errors.Is(belfry.ErrNotReady, belfry.ErrClosed) || errors.Is(belfry.ErrRejected, belfry.ErrNotReady) || errors.Is(belfry.ErrSpent, belfry.ErrRejected) {
		t.Error("a condition matches one that it does not imply")
	}
	t.Run("a rejection says who, why, how full and when again", func(t *testing.T) {
		err := &belfry.Rejection{Layer: "limit", Reason: "full", InFlight: 50, Limit: 50, RetryAfter: time.Second, Err: belfry.ErrNotReady}
		const want = "limit: full (50 of 50 in flight), retry after 1s: belfry: not ready"
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
		wrapped := fmt.Errorf("calling: %w", err)
		if got, ok := errors.AsType[*belfry.Rejection](wrapped); !ok || got.Limit != 50 || belfry.RetryAfter(wrapped) != time.Second {
			t.Errorf("AsType: %v, %v", got, ok)
		}
	})
	t.Run("Refuse leaves a refusal to whoever made it", func(t *testing.T) {
		inner := &belfry.Rejection{Layer: "limit"}
		if got := belfry.Refuse("outer", inner); got != error(inner) {
			t.Errorf("got %v", got)
		}
		if belfry.Refuse("outer", nil) != nil {
			t.Error("nil became an error")
		}
	})
	t.Run("Sent hides the refusal and nothing else", func(t *testing.T) {
		err := belfry.Sent(errors.Join(errBoom, &belfry.Rejection{Layer: "limit", Err: belfry.ErrNotReady}, belfry.ErrClosed))
		for _, hidden := range []error{belfry.ErrRejected, belfry.ErrNotReady, belfry.ErrClosed} {
			if errors.Is(err, hidden) {
				t.Errorf("matches %v", hidden)
			}
		}
		if _, ok := errors.AsType[*belfry.Rejection](err); ok {
			t.Error("holds a Rejection")
		}
		if !errors.Is(err, errBoom) || !errors.Is(fmt.Errorf("w: %w", err), errBoom) {
			t.Error("lost its cause")
		}
		if belfry.Sent(errBoom) != errBoom || belfry.Sent(nil) != nil {
			t.Error("changed an error that was no refusal")
		}
		full := fmt.Errorf("full: %w", belfry.ErrNotReady) // as a layer names its own refusals
		if err := belfry.Sent(errors.Join(full, errBoom)); errors.Is(err, full) || !errors.Is(err, errBoom) {
			t.Error("matches a condition that implies a refusal")
		}
	})
	t.Run("Func is a border", func(t *testing.T) {
		inner := newRoom(t, 0, echo)
		svc := belfry.Of(func(ctx context.Context, req int) (string, error) { return belfry.TryDo(ctx, inner, req) })
		if _, err := belfry.Do(t.Context(), svc, 1); err == nil || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
	})
}
