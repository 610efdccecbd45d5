package retry_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/retry"
)

func TestPause(t *testing.T) {
	bubble(t, "S4 one place is free during the pause with Retry(Limit), none with Limit(Retry)", func(t *testing.T) {
		for _, limitOutside := range []bool{false, true} {
			in := newServer(t, 100, statuses(503, 200))
			places := &limit{c: make(chan struct{}, 1)}
			cfg := noBudget(2)
			cfg.Backoff = retry.Backoff{Min: time.Second, Jitter: 0.5}
			var svc belfry.Service[string, *page]
			want := 1
			if limitOutside {
				places.inner, want = retry.New(in, cfg, pages), 0
				svc = places
			} else {
				places.inner = in
				svc = retry.New(places, cfg, pages)
			}
			done := make(chan *page)
			go func() {
				res, _ := belfry.Do(t.Context(), svc, "hello")
				done <- res
			}()
			elapse(100 * time.Millisecond)
			if got := places.free(); got != want {
				t.Errorf("limit outside %v: %d places free in the pause, want %d", limitOutside, got, want)
			}
			(<-done).Close()
			if places.free() != 1 {
				t.Errorf("limit outside %v: the place was not given back", limitOutside)
			}
		}
	})

	bubble(t, "D40 D42 pauses of whole seconds have jitter, and there is always a pause", func(t *testing.T) {
		cfg := noBudget(8)
		cfg.Backoff = retry.Backoff{Min: time.Second, Max: 4 * time.Second}
		for i, wait := range waits(t, cfg, 8) {
			base := min(4*time.Second, time.Second<<i)
			if wait <= 0 || wait >= base || wait%time.Second == 0 {
				t.Errorf("pause %d is %v, want a random part of %v", i, wait, base)
			}
		}
	})

	bubble(t, "D42 the zero Backoff begins with 50 ms", func(t *testing.T) {
		cfg := noBudget(20)
		cfg.Backoff.Jitter = 1e-9
		for i, wait := range waits(t, cfg, 20) {
			if want := min(10*time.Second, 50*time.Millisecond<<i); want-wait > time.Microsecond || wait > want {
				t.Errorf("pause %d is %v, want about %v", i, wait, want)
			}
		}
	})

	bubble(t, "D41 X12 requests have jitter of their own, also from one source", func(t *testing.T) {
		seen := map[time.Duration]bool{}
		cfg := noBudget(2)
		cfg.Rand = rand.NewPCG(1, 2)
		cfg.OnRetry = func(e retry.Event) { seen[e.Wait] = true }
		svc := retry.New(newServer(t, 1, inTurn(errBroken)), cfg, pages)
		for range 50 {
			_, _ = belfry.Do(t.Context(), svc, "hello")
		}
		if len(seen) != 50 {
			t.Errorf("%d different pauses of 50", len(seen))
		}
	})

	bubble(t, "X12 the same source gives the same pauses", func(t *testing.T) {
		cfg := noBudget(9)
		cfg.Rand = rand.NewPCG(1, 2)
		first := waits(t, cfg, 9)
		cfg.Rand = rand.NewPCG(1, 2)
		if second := waits(t, cfg, 9); !slices.Equal(first, second) {
			t.Errorf("%v, then %v", first, second)
		}
	})

	bubble(t, "D34 retry-after is waited for in full, with jitter on top", func(t *testing.T) {
		in := newServer(t, 1, func(_ context.Context, n int, _ string) (*page, error) {
			return &page{status: map[int]int{1: 503}[n], after: 5 * time.Second}, nil
		})
		svc := retry.New(in, retry.Config{}, pages)
		begin := time.Now()
		res, err := belfry.Do(t.Context(), svc, "hello")
		if err != nil {
			t.Fatal(err)
		}
		res.Close()
		if took := time.Since(begin); took <= 5*time.Second || took > 5*time.Second+50*time.Millisecond {
			t.Errorf("came back after %v, want within 50ms after 5s", took)
		}
	})

	bubble(t, "D34 a retry-after that is too long is not waited for", func(t *testing.T) {
		for asked, attempts := range map[time.Duration]uint64{30 * time.Second: 2, 30*time.Second + 1: 1} {
			in := newServer(t, 1, func(context.Context, int, string) (*page, error) {
				return &page{status: 503, after: asked}, nil
			})
			svc := retry.New(in, retry.Config{MaxAttempts: 2}, pages)
			res, err := belfry.Do(t.Context(), svc, "hello")
			if err != nil || res.closed.Load() {
				t.Fatalf("%v, %v", res, err)
			}
			res.Close()
			if got := svc.Stats(); got.Attempts != attempts || got.TooLong != 2-attempts {
				t.Errorf("asked for %v: %+v", asked, got)
			}
		}
	})

	bubble(t, "D34 a retry-after that is for ever is waited for as long as the context allows", func(t *testing.T) {
		in := newServer(t, 1, func(context.Context, int, string) (*page, error) {
			return &page{status: 503, after: math.MaxInt64}, nil
		})
		svc := retry.New(in, retry.Config{MaxRetryAfter: math.MaxInt64}, pages)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, cancel)
		begin := time.Now()
		_, err := belfry.Do(ctx, svc, "hello")
		if took := time.Since(begin); took != time.Hour || !errors.Is(err, context.Canceled) || in.calls != 1 {
			t.Errorf("%d attempts in %v: %v", in.calls, took, err)
		}
	})

	bubble(t, "D42 a negative retry-after does not shorten the pause", func(t *testing.T) {
		in := newServer(t, 1, func(_ context.Context, n int, _ string) (*page, error) {
			return &page{status: map[int]int{1: 503}[n], after: -time.Hour}, nil
		})
		begin := time.Now()
		res, err := belfry.Do(t.Context(), retry.New(in, retry.Config{Backoff: retry.Backoff{Jitter: 1e-9}}, pages), "hello")
		if err != nil {
			t.Fatal(err)
		}
		res.Close()
		if took := time.Since(begin).Round(time.Millisecond); took != 50*time.Millisecond {
			t.Errorf("came back after %v", took)
		}
	})

	bubble(t, "the deadline is looked at before the pause", func(t *testing.T) {
		cfg := noBudget(2)
		cfg.Backoff = retry.Backoff{Min: time.Second, Jitter: 1e-9}
		for left, attempts := range map[time.Duration]uint64{999 * time.Millisecond: 1, 1001 * time.Millisecond: 2} {
			in := newServer(t, 1, statuses(503))
			svc := retry.New(in, cfg, pages)
			ctx, cancel := context.WithTimeout(t.Context(), left)
			begin := time.Now()
			res, err := belfry.Do(ctx, svc, "hello")
			cancel()
			if err != nil || res.status != 503 || res.closed.Load() {
				t.Fatalf("%v, %v", res, err)
			}
			if attempts == 1 && time.Since(begin) != 0 {
				t.Errorf("gave up only after %v", time.Since(begin))
			}
			res.Close()
			if got := svc.Stats(); got.Attempts != attempts || got.OutOfTime != 2-attempts {
				t.Errorf("%v left: %+v", left, got)
			}
		}
	})

	bubble(t, "a deadline that forbids the pause costs no budget and no copy", func(t *testing.T) {
		cfg := retry.Config{Budget: budget.New(budget.Config{})}
		sem := pages
		sem.Copy = func(req string) (string, bool) { t.Error("copied"); return req, true }
		ctx, cancel := context.WithTimeout(t.Context(), 1)
		defer cancel()
		cfg.Backoff.Jitter = 1e-9
		_, err := belfry.Do(ctx, retry.New(newServer(t, 1, inTurn(errBroken)), cfg, sem), "hello")
		if got := cfg.Budget.Stats(); err != errBroken || got.Withdrawals+got.Refused != 0 {
			t.Errorf("%v, %+v", err, got)
		}
	})
}

// waits returns the pauses of one request that is tried so many times.
func waits(t *testing.T, cfg retry.Config, attempts int) (list []time.Duration) {
	t.Helper()
	last := time.Now()
	in := newServer(t, 1, func(context.Context, int, string) (*page, error) {
		list = append(list, time.Since(last))
		last = time.Now()
		return nil, errBroken
	})
	_, _ = belfry.Do(t.Context(), retry.New(in, cfg, pages), "hello")
	if len(list) != attempts {
		t.Fatalf("%d attempts, want %d", len(list), attempts)
	}
	return list[1:]
}

// A limit has places, which a page holds until it is closed.
type limit struct {
	inner belfry.Service[string, *page]
	c     chan struct{}
}

func (l *limit) free() int { return cap(l.c) - len(l.c) }

func (l *limit) Acquire(ctx context.Context) (belfry.Permit, error) {
	select {
	case l.c <- struct{}{}:
	case <-ctx.Done():
		return belfry.Permit{}, ctx.Err()
	}
	return l.inner.Acquire(ctx)
}

func (l *limit) Release(permit belfry.Permit) {
	l.inner.Release(permit)
	<-l.c
}

func (l *limit) Call(ctx context.Context, permit belfry.Permit, req string) (*page, error) {
	res, err := l.inner.Call(ctx, permit, req)
	if err != nil {
		<-l.c
		return nil, err
	}
	free := res.free
	res.free = func() { free(); <-l.c }
	return res, nil
}
