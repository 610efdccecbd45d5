package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/retry"
)

func TestContext(t *testing.T) {
	bubble(t, "what one attempt was asked is forgotten with the next", func(t *testing.T) {
		in := newServer(t, 1, func(ctx context.Context, n int, _ string) (*page, error) {
			if n == 1 {
				attempt.Finalize(ctx)
			}
			return nil, errBroken
		})
		var final []bool
		svc := retry.NewPolicy(in, always(&judge{observe: func(a *retry.Attempt[*page]) bool {
			final = append(final, a.Final)
			return a.N < 2
		}}))
		_, _ = belfry.Do(t.Context(), svc, "hello")
		if !slices.Equal(final, []bool{true, false}) {
			t.Errorf("final: %v", final)
		}
	})

	bubble(t, "D48 attempts tell each other where they went", func(t *testing.T) {
		endpoints := []*int{new(int), new(int), new(int)}
		in := newServer(t, 1, func(ctx context.Context, n int, _ string) (*page, error) {
			tried := attempt.From(ctx)
			for i, e := range endpoints {
				if got, want := tried.Has(e), i < n-1; got != want {
					t.Errorf("attempt %d: endpoint %d tried: %v", n, i, got)
				}
			}
			tried.Add(endpoints[n-1])
			return nil, errBroken
		})
		svc := retry.New(in, retry.Config{}, pages)
		_, _ = belfry.Do(t.Context(), svc, "hello")
		in.calls = 0
		_, _ = belfry.Do(t.Context(), svc, "hello") // another request has been nowhere
		if in.calls != 3 {
			t.Errorf("%d attempts", in.calls)
		}
	})

	bubble(t, "a retry inside a hedge's extra attempt does not queue", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		var noWait []bool
		probe := &watched{in, func(ctx context.Context) { noWait = append(noWait, errors.Is(ctx.Err(), belfry.ErrNotReady)) }}
		svc := retry.New(probe, noBudget(2), pages)
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = svc.Call(attempt.Hedge(t.Context()), permit, "hello")
		if !slices.Equal(noWait, []bool{false, true}) {
			t.Errorf("under NoWait: %v", noWait)
		}
	})

	bubble(t, "an attempt's context lives as long as its response", func(t *testing.T) {
		var ctxs []context.Context
		in := newServer(t, 1, func(ctx context.Context, n int, _ string) (*page, error) {
			ctxs = append(ctxs, ctx)
			return statuses(503, 200)(nil, n, "")
		})
		ctx, cancel := context.WithCancel(t.Context())
		res, err := belfry.Do(ctx, retry.New(in, retry.Config{}, pages), "hello")
		if err != nil || ctxs[1].Err() != nil {
			t.Errorf("%v, the context of the response: %v", err, ctxs[1].Err())
		}
		cancel()
		if ctxs[1].Err() == nil {
			t.Error("the end of the request's context does not reach the response")
		}
		res.Close()
	})
}

// A watched service shows the context of every Acquire.
type watched struct {
	*server
	see func(ctx context.Context)
}

func (w *watched) Acquire(ctx context.Context) (belfry.Permit, error) {
	w.see(ctx)
	return w.server.Acquire(ctx)
}
