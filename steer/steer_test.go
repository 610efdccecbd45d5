package steer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/steer"
)

// answers returns a service that answers n to everything.
func answers(n int) belfry.Service[string, int] {
	return belfry.Of(func(context.Context, string) (int, error) { return n, nil })
}

func always(i int) func(context.Context, string) int {
	return func(context.Context, string) int { return i }
}

// full is a service that never has room.
func full() belfry.Service[string, int] {
	return limit.NewConcurrency(answers(57), limit.NewLimiter(0))
}

func build[S any](t *testing.T) func(svc S, err error) S {
	return func(svc S, err error) S {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return svc
	}
}

type service = *steer.Service[string, int]

func TestPick(t *testing.T) {
	must := build[service](t)
	t.Run("ST1 the request goes to the route that was picked", func(t *testing.T) {
		svc := must(steer.New(always(1), steer.To("a", answers(42)), steer.To("b", answers(57))))
		if got, err := belfry.Do(t.Context(), svc, ""); got != 57 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		if got := svc.Stats(); !slices.Equal(got.Routes, []steer.RouteStats{{Name: "a"}, {Name: "b", Picked: 1}}) || got.Lost != 0 {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("ST2 D55 a route that is never ready holds up its own requests alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pick := func(_ context.Context, req string) int { return len(req) }
			svc := must(steer.New(pick, steer.To("ready", answers(42)), steer.To("never", full())))
			waiting := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			go func() {
				_, err := belfry.Do(ctx, svc, "x")
				waiting <- err
			}()
			synctest.Wait()
			begin := time.Now()
			if got, err := belfry.Do(t.Context(), svc, ""); got != 42 || err != nil || time.Since(begin) != 0 {
				t.Errorf("got %d, %v after %v", got, err, time.Since(begin))
			}
			if err := <-waiting; !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, belfry.ErrRejected) || time.Since(begin) != time.Minute {
				t.Errorf("got %v after %v", err, time.Since(begin))
			}
			if got := svc.Stats().Routes[1]; got != (steer.RouteStats{Name: "never", Picked: 1, Refused: 1}) {
				t.Errorf("got %+v", got)
			}
		})
	})

	t.Run("D55 a route that has failed for good fails its own requests alone", func(t *testing.T) {
		backend, gone := belfrytest.NewBackend[string, int](t)
		backend.Close()
		pick := func(_ context.Context, req string) int { return len(req) }
		svc := must(steer.New(pick, steer.To("well", answers(42)), steer.To("gone", gone)))
		if _, err := belfry.Do(t.Context(), svc, "x"); !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if got, err := belfry.Do(t.Context(), svc, ""); got != 42 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	})

	t.Run("D54 X4 two callers share it, and nobody gets what is not ready", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			finish := make(chan struct{})
			l := limit.NewLimiter(1)
			slow := belfry.Of(func(context.Context, string) (int, error) {
				if s := l.Stats(); s.InFlight != 1 {
					t.Errorf("called with %d places taken, want 1", s.InFlight)
				}
				<-finish
				return 42, nil
			})
			svc := must(steer.New(always(0), steer.To("one at a time", limit.NewConcurrency(slow, l))))
			ended := make(chan error, 2)
			permits := make([]belfry.Permit, 2)
			for i := range permits { // as ready as it can say, for both
				var err error
				if permits[i], err = svc.Acquire(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range permits {
				go func() {
					_, err := svc.Call(t.Context(), p, "")
					ended <- err
				}()
			}
			synctest.Wait()
			if s := l.Stats(); s.InFlight != 1 || s.Waiting != 1 {
				t.Errorf("got %+v, want one call and one that waits", s)
			}
			close(finish)
			for range 2 {
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		})
	})

	t.Run("an index out of range is an error that says so", func(t *testing.T) {
		for pick, want := range map[int]string{
			2:          "steer: no route: steer: picked route 2, and there are 0 to 1",
			-7:         "steer: no route: steer: picked route -7, and there are 0 to 1",
			steer.None: "steer: no route: steer: none of 2 routes is for this request",
		} {
			svc := must(steer.New(always(pick), steer.To("a", answers(1)), steer.To("b", answers(2))))
			_, err := belfry.Do(t.Context(), svc, "")
			e, ok := errors.AsType[*steer.RouteError](err)
			if !ok || e.Pick != pick || e.Routes != 2 || !errors.Is(err, belfry.ErrRejected) || errors.Is(err, belfry.ErrNotReady) {
				t.Errorf("got %v", err)
			}
			if err.Error() != want {
				t.Errorf("got %q, want %q", err, want)
			}
			if got := svc.Stats().Lost; got != 1 {
				t.Errorf("%d lost, want 1", got)
			}
		}
	})

	t.Run("the extra attempt of a hedge does not queue", func(t *testing.T) {
		svc := must(steer.New(always(0), steer.To("full", full())))
		if _, err := belfry.Do(attempt.Hedge(t.Context()), svc, ""); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("a context that is done is not steered", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		svc := must(steer.New(func(context.Context, string) int { t.Error("steered"); return 0 }, steer.To("a", answers(1))))
		if _, err := svc.Call(ctx, belfry.Permit{}, ""); !errors.Is(err, context.Canceled) || !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
	})
}

func TestMistakes(t *testing.T) {
	a := steer.To("a", answers(1))
	none := steer.To[string, int]("none", nil)
	key := func(req string) string { return req }
	yes := func(string) bool { return true }
	var noKey func(string) string
	for _, c := range []struct {
		name string
		make func() (service, error)
		want string
	}{
		{"no routes", func() (service, error) { return steer.New[string, int](always(0)) }, "steer: routes must be at least 1, got 0"},
		{"no pick", func() (service, error) { return steer.New(nil, a) }, "steer: pick must not be nil"},
		{"no service", func() (service, error) { return steer.New(always(0), a, none) }, `steer: service of route 1, "none", must not be nil`},
		{"no keys", func() (service, error) { return steer.ByKey(key, map[string]belfry.Service[string, int]{}, nil) }, "steer: routes must be at least 1, got 0"},
		{"no key", func() (service, error) { return steer.ByKey(noKey, nil, answers(1)) }, "steer: key must not be nil"},
		{"no predicates", func() (service, error) { return steer.ByPredicate[string, int]() }, "steer: routes must be at least 1, got 0"},
		{"a route that nothing gets to", func() (service, error) {
			return steer.ByPredicate(steer.Otherwise("all", answers(1)), steer.When(yes, "b", answers(2)))
		}, `steer: route 0, "all", wants every request and must be the last of 2`},
		{"no weights", func() (service, error) { return steer.ByWeight[string, int](nil) }, "steer: routes must be at least 1, got 0"},
		{"a negative weight", func() (service, error) {
			return steer.ByWeight(nil, steer.Share(1, "a", answers(1)), steer.Share(-1, "b", answers(2)))
		}, `steer: weight of route 1, "b", must be at least 0, got -1`},
		{"weights of 0", func() (service, error) { return steer.ByWeight(nil, steer.Share(0, "a", answers(1))) }, "steer: weights must add up to at least 1, got 0"},
		{"too much weight", func() (service, error) {
			return steer.ByWeight(nil, steer.Share(1, "a", answers(1)), steer.Share(int(^uint(0)>>1), "b", answers(2)))
		}, fmt.Sprintf("steer: weights must add up to at most %d", int(^uint(0)>>1))},
	} {
		t.Run(c.name, func(t *testing.T) {
			if svc, err := c.make(); svc != nil || err == nil || err.Error() != c.want {
				t.Errorf("got %v, %v\nwant %s", svc, err, c.want)
			}
		})
	}
}
