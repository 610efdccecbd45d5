package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/retry"
)

func TestNoOther(t *testing.T) {
	bubble(t, "a context that ended during the attempt ends the request with its result", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in := newServer(t, 1, func(context.Context, int, string) (*page, error) {
			cancel()
			return &page{status: 503}, nil
		})
		svc := retry.New(in, retry.Config{}, pages)
		res, err := belfry.Do(ctx, svc, "hello")
		if err != nil || res.status != 503 || res.closed.Load() {
			t.Fatalf("%v, %v", res, err)
		}
		res.Close()
		if got := svc.Stats(); got.OutOfTime != 1 {
			t.Errorf("%+v", got)
		}
	})

	bubble(t, "a cancel ends the pause, and the discarded response is told of", func(t *testing.T) {
		in := newServer(t, 1, statuses(503))
		svc := retry.New(in, retry.Config{Backoff: retry.Backoff{Min: time.Minute, Jitter: 0.5}}, pages)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begin := time.Now()
		_, err := belfry.Do(ctx, svc, "hello")
		if took := time.Since(begin); took != time.Second {
			t.Errorf("took %v", took)
		}
		e, ok := errors.AsType[*retry.Error](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		res, _ := e.Discarded.(*page)
		if e.Attempts != 1 || e.Last != nil || res == nil || res.status != 503 || !res.closed.Load() || e.Outcome.Kind != belfry.Failure {
			t.Errorf("%+v", e)
		}
		if !errors.Is(err, context.Canceled) || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("%v: matches the context's error: %v, ErrRejected: %v", err, errors.Is(err, context.Canceled), errors.Is(err, belfry.ErrRejected))
		}
		if got, want := svc.Stats(), (retry.Stats{Calls: 1, Attempts: 1, Unready: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})

	bubble(t, "X14 D31 a caller that holds the next reservation: the retry's wait ends with its context, and the last real error is told", func(t *testing.T) {
		in := newServer(t, 1, nil)
		svc := retry.New(in, retry.Config{Backoff: retry.Backoff{Min: 10 * time.Millisecond}}, pages)
		held := make(chan belfry.Permit, 1)
		in.answer = func(context.Context, int, string) (*page, error) {
			go func() { // in line for the place that this attempt will give back
				permit, _ := svc.Acquire(context.Background())
				held <- permit
			}()
			synctest.Wait()
			return nil, errBroken
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		_, err := belfry.Do(ctx, svc, "hello")
		if took := time.Since(begin); took != time.Hour {
			t.Errorf("took %v", took)
		}
		if !errors.Is(err, errBroken) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
		svc.Release(<-held)
	})

	bubble(t, "D30 a retry that gets no room returns, and tells of both", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		errFull := &belfry.Rejection{Layer: "server", Reason: "full", Err: belfry.ErrNotReady}
		in.refuse = func(n int) error {
			if n > 1 {
				return errFull
			}
			return nil
		}
		_, err := belfry.Do(t.Context(), retry.New(in, retry.Config{}, pages), "hello")
		e, ok := errors.AsType[*retry.Error](err)
		if !ok || e.Attempts != 1 || e.Last != errBroken || e.Discarded != nil || e.Cause.Error() != errFull.Error() {
			t.Errorf("got %#v", err)
		}
		if errors.Is(err, belfry.ErrRejected) || errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("%v says that nothing was sent", err)
		}
		if in.acquires != 2 {
			t.Errorf("asked for room %d times", in.acquires)
		}
	})

	bubble(t, "D30 a retry that gets no room returns, also where a rejection is called a failure", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		in.refuse = func(n int) error {
			if n > 1 {
				return belfry.ErrNotReady
			}
			return nil
		}
		svc := retry.New(in, retry.Config{}, belfry.Semantics[string, *page]{
			Classify: func(*page, error) belfry.Outcome { return belfry.Outcome{Kind: belfry.Failure, Retry: true} },
		})
		if _, err := belfry.Do(t.Context(), svc, "hello"); !errors.Is(err, errBroken) || in.acquires != 2 {
			t.Errorf("%v, asked for room %d times", err, in.acquires)
		}
	})

	bubble(t, "a rejection is not tried again, and stays one", func(t *testing.T) {
		in := newServer(t, 1, inTurn(&belfry.Rejection{Layer: "server", RetryAfter: time.Second, Err: belfry.ErrNotReady}))
		svc := retry.New(in, retry.Config{}, pages)
		_, err := belfry.Do(t.Context(), svc, "hello")
		if !errors.Is(err, belfry.ErrNotReady) || belfry.RetryAfter(err) != time.Second {
			t.Errorf("got %v", err)
		}
		if got, want := svc.Stats(), (retry.Stats{Calls: 1, Attempts: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})

	bubble(t, "a rejection after an attempt that was sent tells of that one", func(t *testing.T) {
		for _, first := range []int{0, 503} {
			in := newServer(t, 1, nil)
			in.answer = func(_ context.Context, n int, _ string) (*page, error) {
				switch {
				case n > 1:
					return nil, &belfry.Rejection{Layer: "server", Err: belfry.ErrNotReady}
				case first == 0:
					return nil, errBroken
				}
				return &page{status: first}, nil
			}
			_, err := belfry.Do(t.Context(), retry.New(in, retry.Config{}, pages), "hello")
			e, ok := errors.AsType[*retry.Error](err)
			if !ok || e.Attempts != 2 || e.Outcome.Kind != belfry.Failure || errors.Is(err, belfry.ErrRejected) {
				t.Fatalf("got %#v", err)
			}
			if res, _ := e.Discarded.(*page); first != 0 && (res == nil || res.status != first || e.Last != nil) {
				t.Errorf("got %+v", e)
			}
			if first == 0 && (e.Last != errBroken || e.Discarded != nil) {
				t.Errorf("got %+v", e)
			}
		}
	})

	bubble(t, "a failed dial is tried again without a copy, and rejected if none succeeds", func(t *testing.T) {
		in := newServer(t, 1, inTurn(undialled(), undialled(), nil))
		svc := retry.New(in, retry.Config{}, pages)
		res, err := belfry.Do(t.Context(), svc, "once only")
		if err != nil {
			t.Fatal(err)
		}
		res.Close()
		in.answer = inTurn(undialled())
		if _, err := belfry.Do(t.Context(), svc, "once only"); !errors.Is(err, errDial) || !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
		if got := svc.Stats(); got.Attempts != 6 || got.NotCopyable != 0 {
			t.Errorf("%+v", got)
		}
	})

	bubble(t, "a failed dial whose retry gets no room is still a rejection, and tells of the dial", func(t *testing.T) {
		in := newServer(t, 1, inTurn(undialled()))
		in.refuse = func(n int) error {
			if n > 1 {
				return belfry.ErrClosed
			}
			return nil
		}
		_, err := belfry.Do(t.Context(), retry.New(in, retry.Config{}, pages), "hello")
		if !errors.Is(err, errDial) || !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})

	bubble(t, "a failed dial between sent attempts does not replace what was sent", func(t *testing.T) {
		in := newServer(t, 1, func(_ context.Context, n int, _ string) (*page, error) {
			if n == 1 {
				return &page{status: 503}, nil
			}
			return nil, undialled()
		})
		_, err := belfry.Do(t.Context(), retry.New(in, retry.Config{}, pages), "hello")
		e, ok := errors.AsType[*retry.Error](err)
		if !ok || e.Attempts != 3 || e.Discarded.(*page).status != 503 || errors.Is(err, belfry.ErrRejected) || !errors.Is(err, errDial) {
			t.Errorf("got %v", err)
		}
	})
}
