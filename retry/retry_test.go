package retry_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
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
	bubble(t, "RT1 RT2 a failure is tried again, by default three times in all", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		svc := retry.New(in, retry.Config{}, pages)
		if _, err := belfry.Do(t.Context(), svc, "hello"); err != errBroken {
			t.Errorf("got %v", err)
		}
		if got, want := svc.Stats(), (retry.Stats{Calls: 1, Attempts: 3, Retries: 2, OutOfAttempts: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})

	bubble(t, "D34 attempts and elapsed time are bounded without being asked for", func(t *testing.T) {
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

	bubble(t, "S8 the response ends, then comes the pause, then Acquire, then Call", func(t *testing.T) {
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

	bubble(t, "a failure that is not worth another attempt is returned", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		svc := retry.New(in, retry.Config{}, belfry.Semantics[string, *page]{
			Classify: func(*page, error) belfry.Outcome { return belfry.Outcome{Kind: belfry.Failure} },
		})
		if _, err := belfry.Do(t.Context(), svc, "hello"); err != errBroken || in.calls != 1 {
			t.Errorf("%v after %d attempts", err, in.calls)
		}
	})

	bubble(t, "RT4 D33 a request that cannot be copied is sent once, which is counted and costs no budget", func(t *testing.T) {
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
