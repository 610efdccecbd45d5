package limit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

func TestHooks(t *testing.T) {
	bubble(t, "each place, each refusal, and how long it took", func(t *testing.T) {
		var waits []time.Duration
		var refused []error
		var l *limit.Limiter
		l = limit.NewLimiter(1, limit.Config{
			OnAdmit: func(d time.Duration) {
				if err := l.Resize(l.Stats().Limit); err != nil { // would wait for ever under a lock
					t.Error(err)
				}
				waits = append(waits, d)
			},
			OnReject: func(err error) { l.Stats(); refused = append(refused, err) },
		})
		b, inner := newBackend()
		svc := limit.NewConcurrency(inner, l)
		first := call(t.Context(), svc, "first")
		r := b.next(t)
		second := call(t.Context(), svc, "second")
		synctest.Wait()

		_, unready := belfry.TryDo(t.Context(), svc, "third")
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, late := belfry.Do(brief, svc, "fourth")
		if want := []error{unready, late}; !slices.Equal(refused, want) || unready == nil || late == nil {
			t.Errorf("told of %v, want %v", refused, want)
		}
		if rejection, ok := errors.AsType[*belfry.Rejection](unready); !ok || rejection.Limit != 1 || rejection.InFlight != 1 {
			t.Errorf("the refusal is %+v", rejection)
		}
		if !errors.Is(late, context.DeadlineExceeded) {
			t.Errorf("the one that waited is refused for %v", late)
		}

		r.answer <- "done"
		done(t, "first", first)
		b.next(t).answer <- "done"
		done(t, "second", second)
		if want := []time.Duration{0, time.Second}; !slices.Equal(waits, want) {
			t.Errorf("waited %v, want %v", waits, want)
		}
		wantStats(t, l, limit.Stats{Limit: 1, Admitted: 2, Rejected: 1, Cancelled: 1})
	})

	bubble(t, "what the inner service refuses is not told of", func(t *testing.T) {
		l := limit.NewLimiter(1, limit.Config{OnReject: func(err error) { t.Errorf("told of %v", err) }})
		svc := limit.NewConcurrency[string, *stream](faulty{acquire: func() error { return errBoom }}, l)
		if _, err := belfry.Do(t.Context(), svc, ""); !errors.Is(err, errBoom) {
			t.Errorf("got %v", err)
		}
	})

	for name, cfg := range map[string]limit.Config{
		"OnAdmit":  {OnAdmit: func(time.Duration) { panic(errBoom) }},
		"OnReject": {OnReject: func(error) { panic(errBoom) }},
	} {
		bubble(t, "a panic in "+name+" passes and keeps no place", func(t *testing.T) {
			l := limit.NewLimiter(1, cfg)
			released := false
			svc := limit.NewConcurrency[string, *stream](faulty{release: func() { released = true }}, l)
			if name == "OnReject" {
				if _, err := svc.Acquire(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			func() {
				defer func() {
					if got := recover(); got != errBoom {
						t.Errorf("recovered %v", got)
					}
				}()
				_, _ = svc.Acquire(belfry.NoWait(t.Context()))
			}()
			want := 0
			if name == "OnReject" {
				want = 1 // the other's
			}
			if s := l.Stats(); s.Reserved != want || released {
				t.Errorf("left behind: %+v, released %v", s, released)
			}
		})
	}
}
