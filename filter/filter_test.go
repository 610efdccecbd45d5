package filter_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/filter"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/limit"
)

var errUnfit = errors.New("unfit")

func reply(_ context.Context, req string) (string, error) {
	return strings.Replace(req, "ping", "pong", 1), nil
}

func accept(_ context.Context, req string) (string, error) { return req, nil }

func refuse(context.Context, string) (string, error) { return "", errUnfit }

func TestAccepted(t *testing.T) {
	t.Run("F1 ten requests under way at once each get their own answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			backend, inner := belfrytest.NewBackend[string, string](t)
			backend.Allow(10)
			svc := filter.New(inner, func(_ context.Context, req string) (string, error) {
				time.Sleep(time.Second) // decides while others do
				return req, nil
			})
			var calls sync.WaitGroup
			for i := range 10 {
				calls.Go(func() {
					got, err := belfry.Do(t.Context(), svc, fmt.Sprint("ping-", i))
					if want := fmt.Sprint("pong-", i); got != want || err != nil {
						t.Errorf("got %q, %v, want %q", got, err, want)
					}
				})
			}
			arrived := make([]*belfrytest.Request[string, string], 10)
			for i := range arrived {
				arrived[i] = backend.Next()
			}
			for _, r := range arrived {
				r.Answer(strings.Replace(r.Req, "ping", "pong", 1))
			}
			calls.Wait()
			if got := svc.Stats(); got != (filter.Stats{Passed: 10}) {
				t.Errorf("got %+v", got)
			}
		})
	})

	t.Run("the request's type may change", func(t *testing.T) {
		double := belfry.Of(func(_ context.Context, n int) (int, error) { return 2 * n, nil })
		svc := filter.New(double, func(_ context.Context, req string) (int, error) { return strconv.Atoi(req) })
		if got, err := belfry.Do(t.Context(), svc, "21"); got != 42 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		if _, err := belfry.Do(t.Context(), svc, "many"); !errors.Is(err, strconv.ErrSyntax) || !errors.Is(err, filter.Err) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("an error of the inner service is its own", func(t *testing.T) {
		boom := errors.New("boom")
		svc := filter.New(belfry.Of(func(context.Context, string) (string, error) { return "", boom }), accept)
		if _, err := belfry.Do(t.Context(), svc, ""); err != boom {
			t.Errorf("got %v", err)
		}
		full := filter.New(limit.NewConcurrency(belfry.Of(reply), limit.NewLimiter(0)), accept)
		_, err := belfry.Do(attempt.Hedge(t.Context()), full, "")
		if r, ok := errors.AsType[*belfry.Rejection](err); !ok || r.Layer != "limit" || errors.Is(err, filter.Err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRejected(t *testing.T) {
	t.Run("F2 a rejected request is not sent, and its error says why", func(t *testing.T) {
		backend, inner := belfrytest.NewBackend[string, string](t)
		backend.Allow(1)
		svc := filter.New(inner, refuse)
		_, err := belfry.Do(t.Context(), svc, "ping")
		for _, want := range []error{errUnfit, filter.Err, belfry.ErrRejected} {
			if !errors.Is(err, want) {
				t.Errorf("%v is not %v", err, want)
			}
		}
		if errors.Is(err, belfry.ErrNotReady) || errors.Is(err, belfry.ErrClosed) {
			t.Errorf("%v says something about room", err)
		}
		if want := "filter: rejected: unfit"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
		backend.ExpectNone()
		if backend.Free() != 1 {
			t.Errorf("%d permits free, want 1", backend.Free())
		}
		if got := svc.Stats(); got != (filter.Stats{Rejected: 1}) {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("D19 X17 a rejection leaves the only place of a limit free", func(t *testing.T) {
		l := limit.NewLimiter(1)
		svc := filter.New(limit.NewConcurrency(belfry.Of(reply), l), func(_ context.Context, req string) (string, error) {
			if s := l.Stats(); s.Reserved+s.InFlight != 0 {
				t.Errorf("reserved while it is judged: %+v", s)
			}
			return refuse(t.Context(), req)
		})
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := svc.Call(t.Context(), permit, ""); !errors.Is(err, errUnfit) {
			t.Errorf("got %v", err)
		}
		if s := l.Stats(); s.Reserved+s.InFlight != 0 || s.Admitted != 0 {
			t.Errorf("got %+v", s)
		}
	})

	t.Run("X18 nothing inside is reserved while the function is undecided", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := limit.NewLimiter(1)
			only := limit.NewConcurrency(belfry.Of(reply), l)
			decide := make(chan struct{})
			svc := filter.New(only, func(_ context.Context, req string) (string, error) {
				<-decide
				return req, nil
			})
			ended := make(chan error, 1)
			go func() {
				_, err := belfry.Do(t.Context(), svc, "ping")
				ended <- err
			}()
			synctest.Wait()
			if s := l.Stats(); s.Reserved+s.InFlight != 0 {
				t.Errorf("got %+v", s)
			}
			if got, err := belfry.TryDo(t.Context(), only, "ping"); got != "pong" || err != nil {
				t.Errorf("another caller got %q, %v", got, err)
			}
			close(decide)
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	})

	t.Run("a Rejection of the function stays the first, with its retry-after", func(t *testing.T) {
		own := &belfry.Rejection{Layer: "quota", Reason: "used up", RetryAfter: time.Minute, Err: belfry.ErrNotReady}
		svc := filter.New(belfry.Of(reply), func(context.Context, string) (string, error) { return "", own })
		_, err := belfry.Do(t.Context(), svc, "")
		if r, _ := errors.AsType[*belfry.Rejection](err); r != own || belfry.RetryAfter(err) != time.Minute || !errors.Is(err, filter.Err) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("the errand of a function stays its own where it says so", func(t *testing.T) {
		svc := filter.New(belfry.Of(reply), func(context.Context, string) (string, error) {
			return "", belfry.Sent(belfry.ErrClosed)
		})
		if _, err := belfry.Do(t.Context(), svc, ""); !errors.Is(err, filter.Err) || errors.Is(err, belfry.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestContexts(t *testing.T) {
	t.Run("one that is done is not judged", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		svc := filter.New(belfry.Of(reply), func(context.Context, string) (string, error) { t.Error("judged"); return "", nil })
		permit, _ := svc.Acquire(t.Context())
		_, err := svc.Call(ctx, permit, "")
		if !errors.Is(err, context.Canceled) || !errors.Is(err, belfry.ErrRejected) || errors.Is(err, filter.Err) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("one that ends while the request is judged sends nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		inner := belfry.Of(func(context.Context, string) (string, error) { t.Error("sent"); return "", nil })
		svc := filter.New(inner, func(_ context.Context, req string) (string, error) { cancel(); return req, nil })
		if _, err := belfry.Do(ctx, svc, ""); !errors.Is(err, context.Canceled) || !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("a panic of the function reserves nothing", func(t *testing.T) {
		l := limit.NewLimiter(1)
		svc := filter.New(limit.NewConcurrency(belfry.Of(reply), l), func(context.Context, string) (string, error) { panic("x") })
		func() {
			defer func() {
				if v := recover(); v != "x" {
					t.Errorf("recovered %v", v)
				}
			}()
			_, _ = belfry.Do(t.Context(), svc, "")
		}()
		if s := l.Stats(); s.Reserved+s.InFlight != 0 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestValidate(t *testing.T) {
	const want = "filter: judge must not be nil"
	if err := filter.Validate[int, int](nil); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	for name, build := range map[string]func(){
		"New":   func() { filter.New[string](belfry.Of(reply), nil) },
		"Layer": func() { filter.Layer[string, string](nil) },
	} {
		func() {
			defer func() {
				if err, _ := recover().(error); err == nil || err.Error() != want {
					t.Errorf("%s: got %v", name, err)
				}
			}()
			build()
		}()
	}
}
