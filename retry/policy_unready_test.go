package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/retry"
)

func TestPolicyUnready(t *testing.T) {
	bubble(t, "S10 D30 a policy sees that a retry got no room, waits, and tries again", func(t *testing.T) {
		errFull := &belfry.Rejection{Layer: "server", RetryAfter: 3 * time.Second, Err: belfry.ErrNotReady}
		in := newServer(t, 1, inTurn(errBroken, nil))
		in.refuse = func(n int) error {
			if n == 2 || n == 3 {
				return errFull
			}
			return nil
		}
		var seen []retry.Attempt[*page]
		svc := retry.NewPolicy(in, always(&judge{observe: func(a *retry.Attempt[*page]) bool {
			seen = append(seen, *a)
			return a.Err != nil
		}}))
		begin := time.Now()
		res, err := belfry.Do(t.Context(), svc, "hello")
		if err != nil {
			t.Fatal(err)
		}
		res.Close()
		if len(seen) != 4 || seen[0].Unready || !seen[1].Unready || !seen[2].Unready || seen[3].Unready {
			t.Fatalf("the policy saw %+v", seen)
		}
		if a := seen[1]; a.N != 2 || a.Err != errFull || a.Outcome.Kind != belfry.Ignored || a.Outcome.RetryAfter != 3*time.Second {
			t.Errorf("the policy saw %+v", a)
		}
		if got := time.Since(begin); got != 6*time.Second {
			t.Errorf("asked again for %v, want twice the retry-after", got)
		}
		sameLog(t, in.did(), "acquire", "call hello", "acquire", "acquire", "acquire", "call hello", "close 200")
		if got, want := svc.Stats(), (retry.Stats{Calls: 1, Attempts: 2, Retries: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})

	bubble(t, "S10 D30 a policy sees that the context ended the wait", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		var saw error
		svc := retry.NewPolicy(in, always(&judge{
			observe: func(a *retry.Attempt[*page]) bool { saw = a.Err; return a.N == 1 },
			retry:   func(*retry.Attempt[*page], *string) (time.Duration, bool) { return time.Minute, true },
		}))
		_, err := belfry.Do(ctx, svc, "hello")
		if !errors.Is(saw, context.Canceled) || !errors.Is(err, errBroken) || !errors.Is(err, context.Canceled) {
			t.Errorf("saw %v, got %v", saw, err)
		}
	})

	bubble(t, "S10 D30 a policy that always says yes does not spin, and ends with the context", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		in.refuse = func(n int) error {
			if n > 1 {
				return belfry.ErrClosed
			}
			return nil
		}
		svc := retry.NewPolicy(in, always(&judge{}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := belfry.Do(ctx, svc, "hello")
		e, ok := errors.AsType[*retry.Error](err)
		if !ok || e.Last != errBroken || !errors.Is(err, context.Canceled) || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
		if in.acquires > 1100 {
			t.Errorf("asked %d times in a second", in.acquires)
		}
	})

	bubble(t, "a request that is only waiting for room is not copied again", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken, nil))
		in.refuse = func(n int) error {
			if n == 2 {
				return belfry.ErrNotReady
			}
			return nil
		}
		copies := 0
		svc := retry.NewPolicy(in, always(&judge{observe: failed}), belfry.Semantics[string, *page]{
			Copy: func(req string) (string, bool) { copies++; return req, copies == 1 },
		})
		res, err := belfry.Do(t.Context(), svc, "hello")
		if err != nil || copies != 1 {
			t.Fatalf("%v, %d copies", err, copies)
		}
		res.Close()
	})
}
