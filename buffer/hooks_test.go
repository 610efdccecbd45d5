package buffer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/buffer"
)

func TestHooks(t *testing.T) {
	bubble(t, "each call that gets its turn, each that does not, and how long it took", func(t *testing.T) {
		var waits []time.Duration
		var turnedAway []error
		var svc room
		backend, inner := belfrytest.NewBackend[string, string](t)
		svc = buffer.New(inner, 2, buffer.Config{
			MaxWait:  3 * time.Second,
			OnAdmit:  func(d time.Duration) { svc.Stats(); waits = append(waits, d) },
			OnReject: func(err error) { svc.Stats(); turnedAway = append(turnedAway, err) },
		})
		want := func(when string, errs ...error) {
			t.Helper()
			if !slices.Equal(turnedAway, errs) || slices.Contains(errs, nil) {
				t.Errorf("%s: told of %v, want %v", when, turnedAway, errs)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		first, second := call(t.Context(), svc, "first"), call(ctx, svc, "second")
		_, full := belfry.TryDo(t.Context(), svc, "third")
		refused(t, full, "full", belfry.ErrNotReady)
		want("full", full)

		elapse(time.Second)
		cancel()
		gone := done(t, "second", second).err
		refused(t, gone, "context done while waiting", context.Canceled)
		want("gone", full, gone)

		backend.Allow(1)
		backend.Expect("first").Answer("FIRST")
		answered(t, first, "FIRST")
		if !slices.Equal(waits, []time.Duration{time.Second}) {
			t.Errorf("waited %v", waits)
		}

		fourth := call(t.Context(), svc, "fourth")
		elapse(3 * time.Second)
		late := done(t, "fourth", fourth).err
		refused(t, late, "queued too long", belfry.ErrNotReady)
		want("late", full, gone, late)

		_ = svc.Close()
		_, closed := svc.Acquire(t.Context())
		want("closed", full, gone, late, closed)
	})

	bubble(t, "what the inner service refuses is not told of", func(t *testing.T) {
		cfg := buffer.Config{OnReject: func(err error) { t.Errorf("told of %v", err) }}
		svc := buffer.New(service(faulty{acquire: func(context.Context) error { return errBoom }}), 1, cfg)
		if _, err := belfry.Do(t.Context(), svc, ""); !errors.Is(err, errBoom) {
			t.Errorf("got %v", err)
		}
	})

	bubble(t, "while a hook runs, seat and turn are free for others", func(t *testing.T) {
		hold := make(chan struct{})
		backend, inner := belfrytest.NewBackend[string, string](t)
		first := true
		svc := buffer.New(inner, 1, buffer.Config{OnAdmit: func(time.Duration) {
			if first {
				first = false
				<-hold
			}
		}})
		held := call(t.Context(), svc, "held")
		backend.Allow(2)
		synctest.Wait()
		next := call(t.Context(), svc, "next")
		backend.Expect("next").Answer("NEXT")
		answered(t, next, "NEXT")
		close(hold)
		backend.Expect("held").Answer("HELD")
		answered(t, held, "HELD")
	})

	for name, cfg := range map[string]buffer.Config{
		"OnAdmit":              {OnAdmit: func(time.Duration) { panic(errBoom) }},
		"OnReject":             {OnReject: func(error) { panic(errBoom) }},
		"OnReject in the line": {OnReject: func(error) { panic(errBoom) }, MaxWait: time.Second},
	} {
		bubble(t, "a panic in "+name+" passes, and keeps neither seat nor permit", func(t *testing.T) {
			granted, released := 0, 0
			svc := buffer.New(service(faulty{
				acquire: func(ctx context.Context) error {
					if name == "OnAdmit" {
						granted++
						return nil
					}
					<-ctx.Done()
					return &belfry.Rejection{Layer: "inner", Err: ctx.Err()}
				},
				release: func() { released++ },
			}), 1, cfg)
			seats := 0
			if name == "OnReject" {
				if _, err := svc.Acquire(t.Context()); err != nil {
					t.Fatal(err)
				}
				seats = 1 // is this one
			}
			func() {
				defer func() {
					if got := recover(); got != errBoom {
						t.Errorf("recovered %v", got)
					}
				}()
				do := belfry.Do[string, string]
				if name == "OnReject" {
					do = belfry.TryDo[string, string]
				}
				_, _ = do(t.Context(), svc, "")
			}()
			if s := svc.Stats(); s.Seated != seats || s.Queued != 0 || granted != released {
				t.Errorf("left behind: %+v, %d permits of %d", s, granted-released, granted)
			}
		})
	}
}
