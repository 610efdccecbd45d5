package belfry_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
)

// Fallback, caching and single-flight are no layers: each is a function of a few lines, and what a project wants of it differs.
// Their examples are tested here.

func TestSingleFlight(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name string
		end  func(cancel func()) // of the first call, after a second
		errs int
	}{
		{"that goes well", func(func()) {}, 0},
		{"that is cancelled is made again by another", func(cancel func()) { cancel() }, 1},
		{"that panics is made again by another", func(func()) { panic(boom) }, 1},
	} {
		t.Run("one call for all: "+c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				impatient, cancel := context.WithCancel(t.Context())
				defer cancel()
				svc := WithSingleFlight(belfry.Of(func(ctx context.Context, key string) (string, error) {
					time.Sleep(time.Second)
					if calls.Add(1) == 1 {
						c.end(cancel)
					}
					return "the only " + key, ctx.Err()
				}))
				var callers sync.WaitGroup
				var failed atomic.Int32
				for i := range 10 {
					ctx := t.Context()
					if i == 0 {
						ctx = impatient
					}
					callers.Go(func() {
						defer func() {
							if recover() != nil {
								failed.Add(1)
							}
						}()
						if got, err := belfry.Do(ctx, svc, "bell"); err != nil {
							failed.Add(1)
						} else if got != "the only bell" {
							t.Errorf("got %q", got)
						}
					})
					synctest.Wait()
				}
				callers.Wait()
				if int(failed.Load()) != c.errs || int(calls.Load()) != 1+c.errs {
					t.Errorf("%d failed in %d calls, want %d", failed.Load(), calls.Load(), c.errs)
				}
			})
		})
	}

	t.Run("who waits may leave", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			svc := WithSingleFlight(belfry.Of(func(_ context.Context, key string) (string, error) { time.Sleep(time.Hour); return key, nil }))
			first := make(chan error, 1)
			go func() {
				_, err := belfry.Do(t.Context(), svc, "bell")
				first <- err
			}()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := belfry.Do(ctx, svc, "bell"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if err := <-first; err != nil {
				t.Error(err)
			}
		})
	})
}

func TestCacheIsBounded(t *testing.T) {
	c := &Cache[int, int]{size: 3, kept: make(map[int]int)}
	for i := range 1000 {
		c.put(i%7, i)
		if len(c.kept) > 3 || len(c.keys) != len(c.kept) {
			t.Fatalf("%d kept, %d keys", len(c.kept), len(c.keys))
		}
	}
}

func TestFallback(t *testing.T) {
	backup := belfry.Of(func(context.Context, int) (string, error) { return "backup", nil })
	do := func(ctx context.Context, svc belfry.Service[int, string]) (string, error) {
		return belfry.Do(ctx, WithFallback(svc, backup), 1)
	}
	if got, err := do(t.Context(), belfry.Of(echo)); got != "1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	failing := func(context.Context, int) (string, error) { return "", errBoom }
	if got, err := do(t.Context(), belfry.Of(failing)); got != "backup" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	leaving := func(ctx context.Context, _ int) (string, error) { cancel(); return "", ctx.Err() }
	if got, err := do(ctx, belfry.Of(leaving)); got != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v", got, err)
	}
}
