package timeout_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/timeout"
)

func TestOnTimeout(t *testing.T) {
	bubble(t, "is told of each call and each wait that is too late", func(t *testing.T) {
		var told []error
		var svc *timeout.Service[string, string]
		l := limit.NewLimiter(1)
		svc = timeout.New(limit.NewConcurrency(heedful(time.Hour), l), time.Second, timeout.Config{
			Wait: true,
			OnTimeout: func(err error) {
				svc.Stats()
				told = append(told, err)
			},
		})
		_, call := belfry.Do(t.Context(), svc, "")
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, wait := svc.Acquire(t.Context())
		pause(time.Second)
		_, begun := svc.Call(t.Context(), permit, "")
		if !slices.Equal(told, []error{call, wait, begun}) {
			t.Errorf("told of %v, want %v, %v, %v", told, call, wait, begun)
		}
		for _, err := range told {
			if !errors.Is(err, timeout.Err) {
				t.Errorf("%v does not match Err", err)
			}
		}
		if s := l.Stats(); s.Reserved+s.InFlight != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})

	bubble(t, "is not told of other failures", func(t *testing.T) {
		svc := timeout.New(heedful(time.Hour), time.Minute, timeout.Config{OnTimeout: func(err error) { t.Errorf("told of %v", err) }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := belfry.Do(ctx, svc, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})

	for _, wait := range []bool{false, true} {
		bubble(t, "a panic in it passes, and keeps no place", func(t *testing.T) {
			boom := errors.New("boom")
			l := limit.NewLimiter(1)
			svc := timeout.New(limit.NewConcurrency(heedful(time.Hour), l), time.Second, timeout.Config{
				Wait: wait, OnTimeout: func(error) { panic(boom) },
			})
			for range 2 {
				func() {
					defer func() {
						if got := recover(); got != boom {
							t.Errorf("recovered %v", got)
						}
					}()
					_, _ = belfry.Do(t.Context(), svc, "")
				}()
			}
			if s := l.Stats(); s.Reserved+s.InFlight != 0 {
				t.Errorf("left behind: %+v", s)
			}
		})
	}
}
