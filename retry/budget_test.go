package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/retry"
)

func TestBudget(t *testing.T) {
	bubble(t, "S3 the default budget allows 100 retries at once, then none", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		svc := retry.New(in, retry.Config{MaxAttempts: 2, Backoff: retry.Backoff{Min: time.Millisecond, Max: time.Millisecond}}, pages)
		for range 300 {
			_, _ = belfry.Do(t.Context(), svc, "hello")
		}
		if got := svc.Stats(); got.Retries != 100 || got.OutOfBudget != 200 {
			t.Errorf("%+v", got)
		}
		if svc.Budget().Stats().Withdrawals != 100 {
			t.Errorf("%+v", svc.Budget().Stats())
		}
	})

	bubble(t, "only a success deposits, once a request", func(t *testing.T) {
		cfg := retry.Config{Budget: budget.New(budget.Config{}), MaxAttempts: 2}
		in := newServer(t, 1, func(_ context.Context, n int, _ string) (*page, error) {
			return statuses(503, 200, 404, 503, 503)(nil, n, "")
		})
		sem := pages
		sem.Classify = func(res *page, err error) belfry.Outcome {
			if res.status == 404 {
				return belfry.Outcome{Kind: belfry.Ignored, Retry: true}
			}
			return pages.Classify(res, err)
		}
		svc := retry.New(in, cfg, sem)
		for range 3 {
			res, err := belfry.Do(t.Context(), svc, "hello")
			if err != nil {
				t.Fatal(err)
			}
			res.Close()
		}
		if got := cfg.Budget.Stats(); got.Deposits != 1 || got.Withdrawals != 2 {
			t.Errorf("%+v", got)
		}
	})

	bubble(t, "out of budget, a response is returned as it is", func(t *testing.T) {
		svc := retry.New(newServer(t, 1, statuses(503)), spent(), pages)
		res, err := belfry.Do(t.Context(), svc, "hello")
		if err != nil || res.status != 503 || res.closed.Load() {
			t.Fatalf("%v, %v", res, err)
		}
		res.Close()
	})

	bubble(t, "out of budget, an error matches ErrOutOfBudget and itself", func(t *testing.T) {
		_, err := belfry.Do(t.Context(), retry.New(newServer(t, 1, inTurn(errBroken)), spent(), pages), "hello")
		if !errors.Is(err, retry.ErrOutOfBudget) || !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
		_, err = belfry.Do(t.Context(), retry.New(newServer(t, 1, inTurn(undialled())), spent(), pages), "hello")
		if !errors.Is(err, retry.ErrOutOfBudget) || !errors.Is(err, errDial) || !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("nothing sent: got %v", err)
		}
		once := budget.New(budget.Config{NoRatio: true, Reserve: 0.1})
		in := newServer(t, 1, inTurn(errBroken, undialled()))
		_, err = belfry.Do(t.Context(), retry.New(in, retry.Config{Budget: once}, pages), "hello")
		if !errors.Is(err, retry.ErrOutOfBudget) || !errors.Is(err, errBroken) || !errors.Is(err, errDial) || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("sent, then not: got %v", err)
		}
	})

	bubble(t, "a retry further out obeys one that is out of budget", func(t *testing.T) {
		for what, answer := range map[string]func(context.Context, int, string) (*page, error){
			"error":    inTurn(errBroken),
			"response": statuses(503),
		} {
			for glue, wrap := range map[string]func(belfry.Service[string, *page]) belfry.Service[string, *page]{
				"directly": func(svc belfry.Service[string, *page]) belfry.Service[string, *page] { return svc },
				"through a function": func(svc belfry.Service[string, *page]) belfry.Service[string, *page] {
					return belfry.Of(func(ctx context.Context, req string) (*page, error) { return belfry.Do(ctx, svc, req) })
				},
				"through another that has budget": func(svc belfry.Service[string, *page]) belfry.Service[string, *page] {
					return retry.New(svc, noBudget(5), pages)
				},
			} {
				in := newServer(t, 1, answer)
				outer := retry.New(wrap(retry.New(in, spent(), pages)), noBudget(5), pages)
				res, err := belfry.Do(t.Context(), outer, "hello")
				if in.calls != 1 {
					t.Errorf("%s, %s: sent %d times", what, glue, in.calls)
				}
				if err == nil {
					res.Close()
				} else if !errors.Is(err, errBroken) {
					t.Errorf("%s, %s: %v", what, glue, err)
				}
				if got := outer.Stats(); got.Final != 1 {
					t.Errorf("%s, %s: %+v", what, glue, got)
				}
			}
		}
	})
}

// spent is a Config whose budget is empty.
func spent() retry.Config {
	return retry.Config{MaxAttempts: 5, Budget: budget.New(budget.Config{NoRatio: true, NoReserve: true})}
}
