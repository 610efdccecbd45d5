package belfry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/belfry-go/belfry"
)

func TestMaps(t *testing.T) {
	ctx := t.Context()
	t.Run("DX5 each map changes the types it should", func(t *testing.T) {
		base := newRoom(t, 1, echo)
		bytes := belfry.MapRequest(base, func(s string) int { return len(s) })
		length := belfry.MapResponse(bytes, func(s string) int { return len(s) * 10 })
		text := belfry.AndThen(length, func(_ context.Context, n int) (string, error) { return fmt.Sprint("n=", n), nil })
		both := belfry.Then(text, func(_ context.Context, s string, err error) (string, error) { return s + "!", err })
		last := belfry.MapResult(both, func(s string, err error) ([]byte, error) { return []byte(s), err })
		got, err := belfry.Do(ctx, last, "hello")
		if string(got) != "n=10!" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("errors pass response maps by and reach result maps", func(t *testing.T) {
		base := newRoom(t, 1, func(context.Context, int) (string, error) { return "", errBoom })
		never := func(context.Context, string) (string, error) { t.Error("called for an error"); return "", nil }
		if _, err := belfry.Do(ctx, belfry.AndThen(base, never), 1); err != errBoom {
			t.Errorf("AndThen: %v", err)
		}
		if _, err := belfry.Do(ctx, belfry.MapResponse(base, func(string) string { t.Error("called"); return "" }), 1); err != errBoom {
			t.Errorf("MapResponse: %v", err)
		}
		got, err := belfry.Do(ctx, belfry.MapResult(base, func(_ string, err error) (string, error) { return err.Error(), nil }), 1)
		if got != "boom" || err != nil {
			t.Errorf("MapResult: %q, %v", got, err)
		}
	})
	t.Run("a panic in MapRequest gives the room back", func(t *testing.T) {
		base := newRoom(t, 1, echo)
		svc := belfry.MapRequest(base, func(int) int { panic("x") })
		func() {
			defer func() { _ = recover() }()
			_, _ = belfry.Do(ctx, svc, 1)
		}()
		base.wantFree(1)
	})
	t.Run("MapError keeps what an error says about sending", func(t *testing.T) {
		nice := errors.New("try later")
		full := belfry.MapError[int, string](newRoom(t, 0, echo), func(error) error { return nice })
		_, err := belfry.TryDo(ctx, full, 1)
		if !errors.Is(err, nice) || !errors.Is(err, belfry.ErrNotReady) || err.Error() != "try later" {
			t.Errorf("refused: %v", err)
		}
		failing := newRoom(t, 1, func(context.Context, int) (string, error) { return "", errBoom })
		_, err = belfry.Do(ctx, belfry.MapError[int, string](failing, func(error) error { return belfry.ErrNotReady }), 1)
		if err == nil || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("sent: %v", err)
		}
		_, err = belfry.Do(ctx, belfry.MapError[int, string](failing, func(error) error { return nil }), 1)
		if err != errBoom {
			t.Errorf("nil: %v", err)
		}
	})
	t.Run("a rejection on the way back is not this call's", func(t *testing.T) {
		svc := belfry.Then(newRoom(t, 1, echo), func(context.Context, string, error) (string, error) { return "", belfry.ErrNotReady })
		if _, err := belfry.Do(ctx, svc, 1); err == nil || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a refusal by a late layer inside stays one", func(t *testing.T) {
		errNamed := errors.New("named")
		svc := belfry.MapResult(belfry.Service[int, string](lateRefusal{}), func(res string, err error) (string, error) { return res, errors.Join(errNamed, err) })
		if _, err := belfry.Do(ctx, svc, 1); !errors.Is(err, belfry.ErrNotReady) || !errors.Is(err, errNamed) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a held reservation passes through", func(t *testing.T) {
		base := newRoom(t, 1, echo)
		svc := belfry.MapResponse(belfry.MapRequest(base, func(i int) int { return i }), func(s string) string { return s })
		r, err := belfry.Reserve(ctx, svc)
		if err != nil {
			t.Fatal(err)
		}
		base.wantFree(0)
		r.Release()
		base.wantFree(1)
	})
}
