package stack_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/hedge"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/stack"
)

func TestHedge(t *testing.T) {
	t.Run("prints what is not the default", func(t *testing.T) {
		got := stack.New[int, int]().
			Hedge().
			Hedge(hedge.Config{Delay: time.Second, MaxHedges: 2, WaitLosers: true, Budget: budget.Unlimited()}).
			Hedge(hedge.Config{Percentile: 0.9, MinSamples: 5, Period: time.Minute, Detach: true}).
			String()
		const want = "hedge(after percentile 0.95) → hedge(after 1s, max hedges 2, waits for losers, own budget) → " +
			"hedge(after percentile 0.9, min samples 5, period 1m0s, detached)"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})

	for name, c := range map[string]struct {
		stack stack.Stack[int, int]
		want  string // empty: it is built
	}{
		"directly over a buffer":  {stack.New[int, int]().Hedge().Buffer(5), "layer 1, hedge: must not be directly over a buffer"},
		"under a buffer":          {stack.New[int, int]().Buffer(5).Hedge(), ""},
		"over what is between":    {stack.New[int, int]().Hedge().ConcurrencyLimit(9).Buffer(5), ""},
		"innermost":               {stack.New[int, int]().Hedge(), ""},
		"out of range":            {stack.New[int, int]().Hedge(hedge.Config{Percentile: 2}), "layer 1, hedge: hedge: percentile must be above 0"},
		"with two Configs":        {stack.New[int, int]().Hedge(hedge.Config{}, hedge.Config{}), "at most one Config, got 2"},
		"over a buffer, a second": {stack.New[int, int]().Hedge().Hedge().Buffer(1), "layer 2, hedge: must not be directly over a buffer"},
	} {
		t.Run(name, func(t *testing.T) {
			svc, err := c.stack.Build(belfry.Of(double))
			switch {
			case c.want == "" && (svc == nil || err != nil):
				t.Errorf("not built: %v", err)
			case c.want != "" && (svc != nil || err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}

	t.Run("draws on the stack's budget, into which one of its layers pays", func(t *testing.T) {
		for name, c := range map[string]struct {
			add      func(stack.Stack[int, int]) stack.Stack[int, int]
			deposits uint64
		}{
			"alone":         {func(s stack.Stack[int, int]) stack.Stack[int, int] { return s.Hedge() }, 1},
			"under a retry": {func(s stack.Stack[int, int]) stack.Stack[int, int] { return s.Retry(retry.Config{}).Hedge() }, 1},
			"over a retry":  {func(s stack.Stack[int, int]) stack.Stack[int, int] { return s.Hedge().Retry(retry.Config{}) }, 1},
			"with a retry of other means": {func(s stack.Stack[int, int]) stack.Stack[int, int] {
				return s.Hedge().Retry(retry.Config{Budget: budget.Unlimited()})
			}, 1},
			"with other means than retry": {func(s stack.Stack[int, int]) stack.Stack[int, int] {
				return s.Hedge(hedge.Config{Budget: budget.Unlimited()}).Retry(retry.Config{})
			}, 1},
			"with other means than anyone": {func(s stack.Stack[int, int]) stack.Stack[int, int] {
				return s.Hedge(hedge.Config{Budget: budget.Unlimited()})
			}, 0},
		} {
			b := budget.New(budget.Config{})
			svc, err := c.add(stack.New[int, int]().Budget(b)).Build(belfry.Of(double))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := belfry.Do(t.Context(), svc, 1); err != nil {
				t.Fatal(err)
			}
			if got := b.Stats().Deposits; got != c.deposits {
				t.Errorf("%s: %d deposits, want %d", name, got, c.deposits)
			}
		}
	})

	t.Run("D48 a hedge goes to another endpoint", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var addrs []string
			dial := func(_ context.Context, _, addr string) (belfry.Service[int, int], error) {
				return belfry.Of(func(ctx context.Context, n int) (int, error) {
					mu.Lock()
					addrs = append(addrs, addr)
					mu.Unlock()
					select {
					case <-time.After(15 * time.Millisecond):
						return n, nil
					case <-ctx.Done():
						return 0, ctx.Err()
					}
				}), nil
			}
			replicas, err := balance.New(discover.List("a", "b"), dial, balance.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer replicas.Close()
			svc, err := stack.New[int, int]().Hedge(hedge.Config{Delay: 10 * time.Millisecond}).Build(replicas)
			if err != nil {
				t.Fatal(err)
			}
			for range 50 {
				addrs = nil
				if _, err := belfry.Do(t.Context(), svc, 1); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if len(addrs) != 2 || addrs[0] == addrs[1] {
					t.Fatalf("sent to %v", addrs)
				}
			}
		})
	})

	t.Run("a hedge does not wait in a buffer further down, nor in a retry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			backend, inner := belfrytest.NewBackend[int, int](t)
			svc, err := stack.New[int, int]().
				Hedge(hedge.Config{Delay: 10 * time.Millisecond}).
				Retry(retry.Config{}).
				Buffer(5).
				Build(inner)
			if err != nil {
				t.Fatal(err)
			}
			backend.Allow(1)
			ended := make(chan error, 1)
			go func() {
				_, err := belfry.Do(t.Context(), svc, 1)
				ended <- err
			}()
			r := backend.Expect(1)
			time.Sleep(time.Second)
			synctest.Wait()
			if backend.Waiting() != 0 {
				t.Error("the hedge queues")
			}
			r.Answer(2)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if s := svc.(*hedge.Service[int, int]).Stats(); s.Hedges != 1 || s.Won != 0 {
				t.Errorf("%+v", s)
			}
		})
	})
}
