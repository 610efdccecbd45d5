package limit_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, inner := newBackend()
		l := limit.NewLimiter(1)
		svc := limit.NewConcurrency(inner, l)
		var calls []<-chan result
		for range 4 {
			calls = append(calls, call(t.Context(), svc, ""))
			synctest.Wait()
		}
		wantStats(t, l, limit.Stats{Limit: 1, InFlight: 1, Waiting: 3, Admitted: 1})
		if err := l.Resize(3); err != nil {
			t.Error(err)
		}
		wantStats(t, l, limit.Stats{Limit: 3, InFlight: 3, Waiting: 1, Admitted: 3})
		running := []*request{b.next(t), b.next(t), b.next(t)}
		if err := l.Resize(1); err != nil {
			t.Error(err)
		}
		for i, left := range []limit.Stats{
			{Limit: 1, InFlight: 2, Waiting: 1, Admitted: 3},
			{Limit: 1, InFlight: 1, Waiting: 1, Admitted: 3},
			{Limit: 1, InFlight: 1, Admitted: 4},
		} {
			running[i].answer <- ""
			wantStats(t, l, left)
		}
		err := l.Resize(-1)
		if err == nil || !strings.Contains(err.Error(), "at least 0, got -1") {
			t.Errorf("got %v", err)
		}
		if err := l.Resize(0); err != nil {
			t.Error(err)
		}
		if _, err := belfry.TryDo(t.Context(), svc, ""); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
		b.next(t).answer <- ""
		wantStats(t, l, limit.Stats{Admitted: 4, Rejected: 1})
		for _, c := range calls {
			done(t, "call", c)
		}
	})
}

func TestConstructorsRefuse(t *testing.T) {
	for _, c := range []struct {
		want string
		f    func()
	}{
		{"limit: concurrency must be at least 0, got -3", func() { limit.NewLimiter(-3) }},
		{"limit: limiter must not be nil", func() { limit.NewConcurrency(belfry.Of(open), nil) }},
		{"limit: limiter must not be nil", func() { limit.ConcurrencyLayer[int, int](nil) }},
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || err.Error() != c.want {
					t.Errorf("got %v, want %q", err, c.want)
				}
			}()
			c.f()
		}()
	}
	if err := limit.ValidateConcurrency(0); err != nil {
		t.Error(err)
	}
}
