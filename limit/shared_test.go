package limit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

func TestShared(t *testing.T) {
	bubble(t, "D21 a place held while waiting shows as reserved, and cancelling frees it", func(t *testing.T) {
		l := limit.NewLimiter(1)
		svc := limit.NewConcurrency(closedDoor{}, l)
		ctx, cancel := context.WithCancel(t.Context())
		c := acquire(ctx, svc)
		pending(t, "acquire", c)
		wantStats(t, l, limit.Stats{Limit: 1, Reserved: 1})
		cancel()
		if got := done(t, "acquire", c); got.err != context.Canceled {
			t.Errorf("got %v, want the inner error itself", got.err)
		}
		wantStats(t, l, limit.Stats{Limit: 1})
	})

	bubble(t, "D21 a shared limiter placed innermost is not held while waiting", func(t *testing.T) {
		b, inner := newBackend()
		shared, door := limit.NewLimiter(1), limit.NewLimiter(0)
		stuck := limit.NewConcurrency(limit.NewConcurrency(inner, shared), door)
		waiting := acquire(t.Context(), stuck)
		pending(t, "a caller of the stuck stack", waiting)
		c := call(t.Context(), limit.NewConcurrency(inner, shared), "hello")
		b.next(t).answer <- "world"
		if r := done(t, "call of the other stack", c); r.err != nil {
			t.Error(r.err)
		}
		if err := door.Resize(1); err != nil {
			t.Error(err)
		}
		stuck.Release(done(t, "the stuck caller", waiting).permit)
	})

	bubble(t, "D50 a limiter is a plain value that services of all types share", func(t *testing.T) {
		l := limit.NewLimiter(1) // on its own, before any service
		words := limit.ConcurrencyLayer[string, string](l)
		_, inner := newBackend()
		a := words(inner)
		b := limit.NewConcurrency(belfry.Of(func(_ context.Context, n int) (int, error) { return n, nil }), l)
		permit, err := a.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := belfry.TryDo(t.Context(), b, 1); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v, want not ready", err)
		}
		a.Release(permit)
		if n, err := belfry.TryDo(t.Context(), b, 1); n != 1 || err != nil {
			t.Errorf("got %v, %v", n, err)
		}
		if got, want := b.Stats(), (limit.Stats{Limit: 1, Admitted: 1, Rejected: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}
