package shed_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/shed"
)

func TestOnReject(t *testing.T) {
	l := limit.NewLimiter(1)
	t.Run("is told of what is refused, and of nothing else", func(t *testing.T) {
		var told []error
		var svc *shed.Service[string, string]
		svc = shed.New(limit.NewConcurrency(belfry.Of(upper), l), shed.Config{OnReject: func(err error) {
			told = append(told, err)
			if n := svc.Stats().Shed; n != 1 {
				t.Errorf("%d refused when told", n)
			}
		}})
		if _, err := belfry.Do(t.Context(), svc, "admitted"); err != nil {
			t.Fatal(err)
		}
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, full := belfry.Do(t.Context(), svc, "full")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, left := svc.Acquire(gone)
		if !slices.Equal(told, []error{full, left}) || !errors.Is(full, shed.Err) || !errors.Is(left, context.Canceled) {
			t.Errorf("told of %v, want %v and %v", told, full, left)
		}
		svc.Release(permit)
	})
	t.Run("is not told of what is no question of waiting", func(t *testing.T) {
		svc := shed.Layer[string, string](shed.Config{OnReject: func(err error) { t.Errorf("told of %v", err) }})(door{err: belfry.ErrClosed})
		if _, err := svc.Acquire(t.Context()); !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a panic in it passes to the caller", func(t *testing.T) {
		boom := errors.New("boom")
		svc := shed.New[string, string](door{err: belfry.ErrNotReady}, shed.Config{OnReject: func(error) { panic(boom) }})
		defer func() {
			if got := recover(); got != boom {
				t.Errorf("recovered %v", got)
			}
		}()
		_, _ = svc.Acquire(t.Context())
	})
}
