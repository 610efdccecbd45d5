package shed_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/shed"
)

// busy lets the other callers run in the middle of a call.
func busy(_ context.Context, req string) (string, error) {
	runtime.Gosched()
	return req, nil
}

func upper(_ context.Context, req string) (string, error) { return strings.ToUpper(req), nil }

// A door is a service that fails every Acquire with err, if that is set.
type door struct {
	belfry.Service[string, string]
	err  error
	seen func(context.Context)
}

func (d door) Acquire(ctx context.Context) (belfry.Permit, error) {
	if d.seen != nil {
		d.seen(ctx)
	}
	if d.err != nil {
		return belfry.Permit{}, d.err
	}
	return d.Service.Acquire(ctx)
}

func TestShed(t *testing.T) {
	t.Run("LS1 what is ready is called", func(t *testing.T) {
		svc := shed.New(belfry.Of(upper))
		if res, err := belfry.Do(t.Context(), svc, "world"); res != "WORLD" || err != nil {
			t.Errorf("got %q, %v", res, err)
		}
	})

	t.Run("LS2 D53 what is not ready is refused at once, with the layer and the reason", func(t *testing.T) {
		svc := shed.New(limit.NewConcurrency(belfry.Of(upper), limit.NewLimiter(1)))
		r, err := belfry.Reserve(t.Context(), svc)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		_, err = belfry.Do(t.Context(), svc, "world")
		for _, want := range []error{shed.Err, belfry.ErrNotReady, belfry.ErrRejected} {
			if !errors.Is(err, want) {
				t.Errorf("%v is not %v", err, want)
			}
		}
		why, _ := errors.AsType[*belfry.Rejection](err)
		if why == nil || why.Layer != "limit" || why.Reason != "full" || why.InFlight != 1 || why.Limit != 1 {
			t.Errorf("got %+v", why)
		}
		if got, want := err.Error(), "shed: limit: full (1 of 1 in flight): belfry: not ready"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := svc.Stats(); got.Shed != 1 {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("a refusal met on an errand of the function inside is not this service's", func(t *testing.T) {
		full := shed.New(limit.NewConcurrency(belfry.Of(upper), limit.NewLimiter(0)))
		svc := shed.New(belfry.Of(func(ctx context.Context, req string) (string, error) { return belfry.Do(ctx, full, req) }))
		if _, err := belfry.Do(t.Context(), svc, ""); err == nil || errors.Is(err, shed.Err) || errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("D53 a retry-after comes through", func(t *testing.T) {
		svc := shed.New[string, string](door{err: &belfry.Rejection{
			Layer: "rate", RetryAfter: 3 * time.Second, Err: belfry.ErrNotReady,
		}})
		if _, err := belfry.Do(t.Context(), svc, ""); belfry.RetryAfter(err) != 3*time.Second {
			t.Errorf("got %v", err)
		}
	})

	t.Run("D53 a service that does not say who it is", func(t *testing.T) {
		_, err := belfry.Do(t.Context(), shed.New[string, string](door{err: belfry.ErrNotReady}), "")
		why, _ := errors.AsType[*belfry.Rejection](err)
		if why == nil || why.Layer != "inner service" || !errors.Is(err, shed.Err) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("X19 D20 an unspent permit counts until it is released", func(t *testing.T) {
		l := limit.NewLimiter(1)
		svc := shed.New(limit.NewConcurrency(belfry.Of(upper), l))
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := belfry.Do(t.Context(), svc, ""); !errors.Is(err, shed.Err) {
			t.Errorf("got %v", err)
		}
		if s := l.Stats(); s.Reserved != 1 || s.InFlight != 0 {
			t.Errorf("the statistics do not say why: %+v", s)
		}
		svc.Release(permit)
		if _, err := belfry.Do(t.Context(), svc, ""); err != nil {
			t.Error(err)
		}
	})

	t.Run("a context that has ended is refused with its own error", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		svc := shed.New[string, string](door{Service: belfry.Of(upper), seen: func(context.Context) {
			t.Error("the inner service was asked")
		}})
		_, err := svc.Acquire(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, belfry.ErrRejected) || errors.Is(err, shed.Err) {
			t.Errorf("got %v", err)
		}
		if got := svc.Stats(); got.Shed != 0 {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("under NoWait it is the same", func(t *testing.T) {
		free := shed.New(belfry.Of(upper))
		if res, err := belfry.TryDo(t.Context(), free, "world"); res != "WORLD" || err != nil {
			t.Errorf("got %q, %v", res, err)
		}
		full := shed.New(limit.NewConcurrency(belfry.Of(upper), limit.NewLimiter(0)))
		if _, err := belfry.TryDo(t.Context(), full, ""); !errors.Is(err, shed.Err) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("what is no question of waiting passes", func(t *testing.T) {
		for _, want := range []error{belfry.ErrClosed, errors.New("cannot dial")} {
			_, err := shed.New[string, string](door{err: want}).Acquire(t.Context())
			if err != want {
				t.Errorf("got %v, want %v", err, want)
			}
		}
	})

	t.Run("permits pass through", func(t *testing.T) {
		l := limit.NewLimiter(1)
		svc := shed.Layer[string, string]()(limit.NewConcurrency(belfry.Of(upper), l))
		for range 2 {
			permit, err := svc.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			svc.Release(permit)
			if res, err := belfry.Do(t.Context(), svc, "a"); res != "A" || err != nil {
				t.Errorf("got %q, %v", res, err)
			}
		}
		if s := l.Stats(); s.Reserved+s.InFlight != 0 || s.Admitted != 2 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestShedOverLimit(t *testing.T) {
	t.Run("S6 of a thousand at once over ten places, 990 are refused at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			svc := shed.New(limit.NewConcurrency(belfry.Of(func(context.Context, string) (string, error) {
				time.Sleep(100 * time.Millisecond)
				return "", nil
			}), limit.NewLimiter(10)))
			begin := time.Now()
			var served, refused atomic.Int32
			var calls sync.WaitGroup
			for range 1000 {
				calls.Go(func() {
					_, err := belfry.Do(t.Context(), svc, "")
					switch d := time.Since(begin); {
					case err == nil && d == 100*time.Millisecond:
						served.Add(1)
					case errors.Is(err, shed.Err) && d == 0:
						refused.Add(1)
					default:
						t.Errorf("got %v after %v", err, d)
					}
				})
			}
			calls.Wait()
			if s, r := served.Load(), refused.Load(); s != 10 || r != 990 {
				t.Errorf("%d served, %d refused", s, r)
			}
		})
	})

	t.Run("D28 nothing is shed while a place is free", func(t *testing.T) {
		for _, callers := range []int{1, 512} {
			svc := shed.New(limit.NewConcurrency(belfry.Of(busy), limit.NewLimiter(callers)))
			hammer(t, svc, callers, 200_000)
			if got := svc.Stats(); got.Shed != 0 {
				t.Errorf("%d callers: %d of 200000 shed", callers, got.Shed)
			}
		}
	})
}

// hammer makes calls from so many callers at once, and fails if one of them fails.
func hammer(t *testing.T, svc belfry.Service[string, string], callers, calls int) {
	t.Helper()
	var left atomic.Int64
	left.Store(int64(calls))
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := belfry.Do(t.Context(), svc, ""); err != nil {
					t.Errorf("%d callers: %v", callers, err)
					return
				}
			}
		})
	}
	all.Wait()
}
