package stack_test

import (
	"context"
	"errors"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/filter"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/stack"
)

func TestFilter(t *testing.T) {
	odd := errors.New("odd")
	half := func(_ context.Context, n int) (int, error) {
		if n%2 != 0 {
			return 0, odd
		}
		return n / 2, nil
	}
	l := limit.NewLimiter(1)
	s := stack.New[int, int]().Filter(half).Limiter(l)
	if got, want := s.String(), "filter → concurrency limit(1, shared)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	svc, err := s.Build(belfry.Of(double))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := belfry.Do(t.Context(), svc, 4); got != 4 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if _, err := belfry.Do(t.Context(), svc, 3); !errors.Is(err, odd) || !errors.Is(err, filter.Err) || l.Stats().Admitted != 1 {
		t.Errorf("got %v with %+v", err, l.Stats())
	}
	const want = "stack: layer 1, filter: filter: judge must not be nil"
	if _, err := stack.New[int, int]().Filter(nil).Build(belfry.Of(double)); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
