package retry_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/internal/attempt"
	"github.com/belfry-go/belfry/retry"
)

func TestValidate(t *testing.T) {
	for _, cfg := range []retry.Config{
		{},
		{MaxAttempts: 1, Backoff: retry.Backoff{Min: time.Millisecond, Max: time.Millisecond, Jitter: 1}, MaxRetryAfter: 1},
		{Backoff: retry.Backoff{Min: time.Hour}},
	} {
		if err := cfg.Validate(); err != nil {
			t.Errorf("%+v is refused: %v", cfg, err)
		}
	}
	for name, cfg := range map[string]retry.Config{
		"negative attempts":                     {MaxAttempts: -1},
		"negative retry-after":                  {MaxRetryAfter: -1},
		"RT10 jitter +Inf":                      {Backoff: retry.Backoff{Jitter: math.Inf(1)}},
		"RT10 jitter -Inf":                      {Backoff: retry.Backoff{Jitter: math.Inf(-1)}},
		"RT10 jitter NaN":                       {Backoff: retry.Backoff{Jitter: math.NaN()}},
		"RT10 D42 a min of less than 1 ms":      {Backoff: retry.Backoff{Min: time.Microsecond}},
		"a max below the default min":           {Backoff: retry.Backoff{Max: time.Millisecond}},
		"a min that is not a duration to sleep": {Backoff: retry.Backoff{Min: -time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			want := cfg.Validate()
			if want == nil {
				t.Fatalf("%+v is accepted", cfg)
			}
			for what, f := range map[string]func(){
				"New":      func() { retry.New(belfry.Of(func(context.Context, int) (int, error) { return 0, nil }), cfg) },
				"Layer":    func() { retry.Layer[int, int](cfg) },
				"Standard": func() { retry.Standard[int, int](cfg) },
			} {
				func() {
					defer func() {
						if got, _ := recover().(error); got == nil || got.Error() != want.Error() {
							t.Errorf("%s panicked with %v, want %v", what, got, want)
						}
					}()
					f()
				}()
			}
		})
	}
}

// noBudget is a Config that only counts attempts.
func noBudget(attempts int) retry.Config {
	return retry.Config{MaxAttempts: attempts, Budget: budget.Unlimited()}
}

func TestReadyMade(t *testing.T) {
	test := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}

	test("RT1 RT2 a failure is tried again, by default three times in all", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		svc := retry.New(in, retry.Config{}, pages)
		if _, err := belfry.Do(t.Context(), svc, "hello"); err != errBroken {
			t.Errorf("got %v", err)
		}
		if got, want := svc.Stats(), (retry.Stats{Calls: 1, Attempts: 3, Retries: 2, OutOfAttempts: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})

	test("D34 attempts and elapsed time are bounded without being asked for", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		svc := retry.New(in, noBudget(1000), pages)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		_, err := belfry.Do(ctx, svc, "hello")
		if err != errBroken || time.Since(begin) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if got := svc.Stats(); got.OutOfTime != 1 || got.Attempts > 200 {
			t.Errorf("%+v", got)
		}
	})

	test("S8 the response ends, then comes the pause, then Acquire, then Call", func(t *testing.T) {
		in := newServer(t, 1, statuses(503, 200))
		var events []retry.Event
		cfg := noBudget(3)
		cfg.OnRetry = func(e retry.Event) { events = append(events, e); in.note("retry") }
		svc := retry.New(in, cfg, pages)
		res, err := belfry.Do(t.Context(), svc, "hello")
		if err != nil || res.status != 200 {
			t.Fatalf("%v, %v", res, err)
		}
		sameLog(t, in.did(), "acquire", "call hello", "retry", "close 503", "acquire", "call hello")
		if len(events) != 1 || events[0].Attempt != 1 || events[0].Outcome.Kind != belfry.Failure || events[0].Err != nil || events[0].Wait <= 0 {
			t.Errorf("%+v", events)
		}
		res.Close()
	})

	test("S4 one place is free during the pause with Retry(Limit), none with Limit(Retry)", func(t *testing.T) {
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
			time.Sleep(100 * time.Millisecond)
			if got := places.free(); got != want {
				t.Errorf("limit outside %v: %d places free in the pause, want %d", limitOutside, got, want)
			}
			(<-done).Close()
			if places.free() != 1 {
				t.Errorf("limit outside %v: the place was not given back", limitOutside)
			}
		}
	})

	test("D40 D42 pauses of whole seconds have jitter, and there is always a pause", func(t *testing.T) {
		cfg := noBudget(8)
		cfg.Backoff = retry.Backoff{Min: time.Second, Max: 4 * time.Second}
		for i, wait := range waits(t, cfg, 8) {
			base := min(4*time.Second, time.Second<<i)
			if wait <= 0 || wait >= base || wait%time.Second == 0 {
				t.Errorf("pause %d is %v, want a random part of %v", i, wait, base)
			}
		}
	})

	test("D42 the zero Backoff begins with 50 ms", func(t *testing.T) {
		cfg := noBudget(20)
		cfg.Backoff.Jitter = 1e-9
		for i, wait := range waits(t, cfg, 20) {
			if want := min(10*time.Second, 50*time.Millisecond<<i); want-wait > time.Microsecond || wait > want {
				t.Errorf("pause %d is %v, want about %v", i, wait, want)
			}
		}
	})

	test("D41 X12 requests have jitter of their own, also from one source", func(t *testing.T) {
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

	test("X12 the same source gives the same pauses", func(t *testing.T) {
		cfg := noBudget(9)
		cfg.Rand = rand.NewPCG(1, 2)
		first := waits(t, cfg, 9)
		cfg.Rand = rand.NewPCG(1, 2)
		if second := waits(t, cfg, 9); !slices.Equal(first, second) {
			t.Errorf("%v, then %v", first, second)
		}
	})

	test("D34 retry-after is waited for in full, with jitter on top", func(t *testing.T) {
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

	test("D34 a retry-after that is too long is not waited for", func(t *testing.T) {
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

	test("D34 a retry-after that is for ever is waited for as long as the context allows", func(t *testing.T) {
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

	test("D42 a negative retry-after does not shorten the pause", func(t *testing.T) {
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

	test("the deadline is looked at before the pause", func(t *testing.T) {
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

	test("a deadline that forbids the pause costs no budget and no copy", func(t *testing.T) {
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

	test("a context that ended during the attempt ends the request with its result", func(t *testing.T) {
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

	test("a cancel ends the pause, and the discarded response is told of", func(t *testing.T) {
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

	test("X14 D31 a caller that holds the next reservation: the retry's wait ends with its context, and the last real error is told", func(t *testing.T) {
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

	test("D30 a retry that gets no room returns, and tells of both", func(t *testing.T) {
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

	test("a failure that is not worth another attempt is returned", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		svc := retry.New(in, retry.Config{}, belfry.Semantics[string, *page]{
			Classify: func(*page, error) belfry.Outcome { return belfry.Outcome{Kind: belfry.Failure} },
		})
		if _, err := belfry.Do(t.Context(), svc, "hello"); err != errBroken || in.calls != 1 {
			t.Errorf("%v after %d attempts", err, in.calls)
		}
	})

	test("D30 a retry that gets no room returns, also where a rejection is called a failure", func(t *testing.T) {
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

	test("a rejection is not tried again, and stays one", func(t *testing.T) {
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

	test("a rejection after an attempt that was sent tells of that one", func(t *testing.T) {
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

	test("a failed dial is tried again without a copy, and rejected if none succeeds", func(t *testing.T) {
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

	test("a failed dial whose retry gets no room is still a rejection, and tells of the dial", func(t *testing.T) {
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

	test("a failed dial between sent attempts does not replace what was sent", func(t *testing.T) {
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

	test("RT4 D33 a request that cannot be copied is sent once, which is counted and costs no budget", func(t *testing.T) {
		cfg := retry.Config{Budget: budget.New(budget.Config{})}
		in := newServer(t, 1, statuses(503, 200))
		svc := retry.New(in, cfg, pages)
		res, err := belfry.Do(t.Context(), svc, "once")
		if err != nil || res.status != 503 || res.closed.Load() {
			t.Fatalf("%v, %v", res, err)
		}
		res.Close()
		if got, want := svc.Stats(), (retry.Stats{Calls: 1, Attempts: 1, NotCopyable: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		res, _ = belfry.Do(t.Context(), svc, "once")
		res.Close()
		if got := cfg.Budget.Stats(); got.Deposits != 1 || got.Withdrawals+got.Refused != 0 {
			t.Errorf("RT5 D33 a success that could not be copied is not in the budget: %+v", got)
		}
	})

	test("S3 the default budget allows 100 retries at once, then none", func(t *testing.T) {
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

	test("only a success deposits, once a request", func(t *testing.T) {
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

	test("out of budget, a response is returned as it is", func(t *testing.T) {
		svc := retry.New(newServer(t, 1, statuses(503)), spent(), pages)
		res, err := belfry.Do(t.Context(), svc, "hello")
		if err != nil || res.status != 503 || res.closed.Load() {
			t.Fatalf("%v, %v", res, err)
		}
		res.Close()
	})

	test("out of budget, an error matches ErrOutOfBudget and itself", func(t *testing.T) {
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

	test("a retry further out obeys one that is out of budget", func(t *testing.T) {
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

	test("what one attempt was asked is forgotten with the next", func(t *testing.T) {
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

	test("D48 attempts tell each other where they went", func(t *testing.T) {
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

	test("a retry inside a hedge's extra attempt does not queue", func(t *testing.T) {
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

	test("an attempt's context lives as long as its response", func(t *testing.T) {
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

// spent is a Config whose budget is empty.
func spent() retry.Config {
	return retry.Config{MaxAttempts: 5, Budget: budget.New(budget.Config{NoRatio: true, NoReserve: true})}
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

func TestLayer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		shared := budget.New(budget.Config{})
		layer := retry.Layer(retry.Config{Budget: shared}, pages)
		for range 2 {
			_, _ = belfry.Do(t.Context(), layer(in), "hello")
		}
		if got := shared.Stats().Withdrawals; got != 4 {
			t.Errorf("two services paid for %d from the shared budget, want 4", got)
		}
		in.calls = 0
		own := retry.PolicyLayer(always(&judge{observe: func(a *retry.Attempt[*page]) bool { return a.N < 2 }}), pages)
		if _, err := belfry.Do(t.Context(), own(in), "hello"); err != errBroken || in.calls != 2 {
			t.Errorf("%v after %d attempts", err, in.calls)
		}
	})
	for name, f := range map[string]func(){
		"NewPolicy":   func() { retry.NewPolicy[int, int](nil, nil) },
		"PolicyLayer": func() { retry.PolicyLayer[int, int](nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s accepts a nil newPolicy", name)
				}
			}()
			f()
		}()
	}
}

func TestError(t *testing.T) {
	e := &retry.Error{Attempts: 2, Outcome: belfry.Outcome{Kind: belfry.Failure}, Last: errBroken, Cause: retry.ErrOutOfBudget}
	if got, want := e.Error(), "retry: failure after 2 attempts: broken; no other: retry: out of budget"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.Last = nil
	if got, want := e.Error(), "retry: failure after 2 attempts: response; no other: retry: out of budget"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if errors.Is(e, errBroken) || !errors.Is(e, retry.ErrOutOfBudget) {
		t.Error("what an Error matches")
	}
}
