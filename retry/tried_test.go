package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/retry"
)

// A chooser stands for a balancer: what it grants depends on the attempts that the context of its Acquire knows of.
type chooser struct{ acquired []int }

func (c *chooser) Acquire(ctx context.Context) (belfry.Permit, error) {
	c.acquired = append(c.acquired, attempt.From(ctx).Len())
	return belfry.Permit{}, nil
}

func (c *chooser) Call(ctx context.Context, _ belfry.Permit, n int) (int, error) {
	attempt.From(ctx).Add(c)
	return 0, errors.New("failed")
}

func (c *chooser) Release(belfry.Permit) {}

func TestFurtherAttemptsAreAcquiredKnowingWhatWasTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &chooser{}
		if _, err := belfry.Do(t.Context(), retry.New(inner, retry.Config{MaxAttempts: 3}), 1); err == nil {
			t.Fatal("no error")
		}
		// The caller acquires for the first attempt, retry for the others.
		if got := inner.acquired; !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("the Acquires knew of %v earlier attempts, want 0, 1 and 2", got)
		}
	})
}
