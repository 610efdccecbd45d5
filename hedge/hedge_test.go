package hedge_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/hedge"
)

// warm is a service that has learnt from ten calls, of which eight took 1 ms and two 10 ms, that its 90th percentile
// is 10 ms.
func warm(t *testing.T) (*belfrytest.Backend[string, string], *hedge.Service[string, string]) {
	t.Helper()
	backend, inner := belfrytest.NewBackend[string, string](t)
	svc := hedge.New(inner, hedge.Config{Percentile: 0.9, MinSamples: 10, Period: time.Minute}, belfry.Semantics[string, string]{
		Copy:       func(req string) (string, bool) { return req, req != "NOT_CLONABLE" },
		Idempotent: func(req string) bool { return req != "NOT_RETRYABLE" },
	})
	begin := time.Now()
	for i := range 10 {
		backend.Allow(1)
		got := do(t.Context(), svc, "warm")
		r := backend.Next()
		if i < 8 {
			elapse(ms)
		} else {
			elapse(10 * ms)
		}
		r.Answer("up")
		done(t, got)
	}
	if d := svc.Stats().Delay; d != 0 {
		t.Fatalf("delay %v before the period is full", d)
	}
	elapse(time.Minute - time.Since(begin))
	if d := svc.Stats().Delay; d < 9700*time.Microsecond || d > 10300*time.Microsecond {
		t.Fatalf("delay %v, want 10ms give or take 3%%", d)
	}
	return backend, svc
}

func TestHedge(t *testing.T) {
	bubble(t, "HG1 D47 the original is answered first", func(t *testing.T) {
		backend, svc := warm(t)
		backend.Allow(2)
		got := do(t.Context(), svc, "orig")
		first := backend.Expect("orig")
		elapse(9 * ms)
		backend.ExpectNone()
		elapse(2 * ms)
		backend.Expect("orig") // the hedge, which is cancelled
		first.Answer("orig-done")
		if a := done(t, got); a.res != "orig-done" || a.err != nil {
			t.Errorf("got %v", a)
		}
		if s := svc.Stats(); s.Hedges != 1 || s.Won != 0 {
			t.Errorf("%+v", s)
		}
	})

	bubble(t, "HG2 the hedge is answered first", func(t *testing.T) {
		backend, svc := warm(t)
		backend.Allow(2)
		got := do(t.Context(), svc, "orig")
		backend.Expect("orig")
		elapse(11 * ms)
		backend.Expect("orig").Answer("hedge-done")
		if a := done(t, got); a.res != "hedge-done" || a.err != nil {
			t.Errorf("got %v", a)
		}
		if s := svc.Stats(); s.Hedges != 1 || s.Won != 1 {
			t.Errorf("%+v", s)
		}
	})

	bubble(t, "HG3 an answer before the delay", func(t *testing.T) {
		backend, svc := warm(t)
		backend.Allow(2)
		got := do(t.Context(), svc, "orig")
		backend.Expect("orig").Answer("orig-done")
		if a := done(t, got); a.res != "orig-done" {
			t.Errorf("got %v", a)
		}
		elapse(time.Minute)
		backend.ExpectNone()
		if s := svc.Stats(); s.Hedges != 0 || backend.Free() != 1 {
			t.Errorf("%+v, %d free", s, backend.Free())
		}
	})

	for id, c := range map[string]string{
		"HG4 D46 a request that may not be sent twice reserves nothing": "NOT_RETRYABLE",
		"HG5 D46 a request that cannot be copied reserves nothing":      "NOT_CLONABLE",
	} {
		bubble(t, id, func(t *testing.T) {
			backend, svc := warm(t)
			backend.Allow(2)
			got := do(t.Context(), svc, c)
			first := backend.Expect(c)
			for range 20 {
				elapse(ms)
				if backend.Held() != 0 || backend.Free() != 1 {
					t.Fatalf("%d held, %d free: something is reserved for a hedge that is not sent", backend.Held(), backend.Free())
				}
			}
			backend.ExpectNone()
			first.Answer("orig-done")
			if a := done(t, got); a.res != "orig-done" {
				t.Errorf("got %v", a)
			}
			if s := svc.Stats(); s.NotAllowed != 1 || s.Hedges != 0 || svc.Budget().Stats().Withdrawals != 0 {
				t.Errorf("%+v, %+v", s, svc.Budget().Stats())
			}
		})
	}
}

func TestFirstSuccess(t *testing.T) {
	bubble(t, "X13 D43 a failed hedge does not beat a healthy original", func(t *testing.T) {
		svc := hedge.New(attempts(answers(30*ms, "original"), fails(5*ms, errBoom)), after())
		begin := time.Now()
		if res, err := belfry.Do(t.Context(), svc, ""); res != "original" || err != nil || time.Since(begin) != 30*ms {
			t.Errorf("%q, %v after %v", res, err, time.Since(begin))
		}
	})
	bubble(t, "X13 D43 a failed original waits for its hedge", func(t *testing.T) {
		svc := hedge.New(attempts(fails(12*ms, errBoom), answers(20*ms, "hedge")), after())
		begin := time.Now()
		if res, err := belfry.Do(t.Context(), svc, ""); res != "hedge" || err != nil || time.Since(begin) != 30*ms {
			t.Errorf("%q, %v after %v", res, err, time.Since(begin))
		}
		if s := svc.Stats(); s.Won != 1 {
			t.Errorf("%+v", s)
		}
	})
	bubble(t, "a failure before the delay is returned at once", func(t *testing.T) {
		svc := hedge.New(attempts(fails(5*ms, errBoom), answers(0, "hedge")), after())
		begin := time.Now()
		if _, err := belfry.Do(t.Context(), svc, ""); !errors.Is(err, errBoom) || time.Since(begin) != 5*ms {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
	refusal := &belfry.Rejection{Layer: "inside", Err: belfry.ErrNotReady}
	errOther := errors.New("other")
	for name, c := range map[string]struct {
		first, second error
		want          error
		sent          bool
	}{
		"of two errors the first counts":                    {errBoom, errOther, errBoom, true},
		"what was sent tells more than a refusal":           {refusal, errOther, errOther, true},
		"a refusal does not hide what was sent":             {errBoom, refusal, errBoom, true},
		"if nothing was sent, the call matches ErrRejected": {refusal, refusal, belfry.ErrNotReady, false},
	} {
		bubble(t, name, func(t *testing.T) {
			inner := &faulty[string]{}
			inner.call = func(ctx context.Context, n int) (string, error) {
				return fails([]time.Duration{20 * ms, 15 * ms}[n-1], []error{c.first, c.second}[n-1])(ctx)
			}
			_, err := belfry.Do(t.Context(), hedge.New[string, string](inner, after()), "")
			if !errors.Is(err, c.want) || errors.Is(err, belfry.ErrRejected) == c.sent {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	bubble(t, "a response that is a failure is better than an error, and not discarded", func(t *testing.T) {
		for _, first := range []bool{true, false} {
			doc := &document{broken: true}
			inner := &faulty[*document]{call: func(ctx context.Context, n int) (*document, error) {
				if (n == 1) == first {
					time.Sleep(15 * ms)
					return doc, nil
				}
				time.Sleep(18 * ms)
				return nil, errBoom
			}}
			res, err := belfry.Do(t.Context(), hedge.New[string, *document](inner, after(), documents), "")
			if res != doc || err != nil || doc.closed.Load() != 0 {
				t.Fatalf("%v, %v", res, err)
			}
			res.Close()
		}
	})
}

func TestMaxHedges(t *testing.T) {
	bubble(t, "each extra attempt comes a delay after the one before", func(t *testing.T) {
		begin := time.Now()
		var mu sync.Mutex
		var events []hedge.Event
		var at []time.Duration
		cfg := after()
		cfg.MaxHedges = 3
		cfg.OnHedge = func(e hedge.Event) {
			mu.Lock()
			defer mu.Unlock()
			events, at = append(events, e), append(at, time.Since(begin))
		}
		svc := hedge.New(attempts(answers(time.Second, "slow"), answers(time.Second, "slow"), answers(time.Second, "slow"), answers(5*ms, "third")), cfg)
		if res, err := belfry.Do(t.Context(), svc, ""); res != "third" || err != nil || time.Since(begin) != 35*ms {
			t.Errorf("%q, %v after %v", res, err, time.Since(begin))
		}
		if len(events) != 3 || at[0] != 10*ms || at[1] != 20*ms || at[2] != 30*ms || events[2] != (hedge.Event{Hedge: 3, Delay: 10 * ms}) {
			t.Errorf("%v at %v", events, at)
		}
	})
	bubble(t, "none follows when the call is over", func(t *testing.T) {
		cfg := after()
		cfg.MaxHedges = 10
		svc := hedge.New(attempts(answers(25*ms, "original"), answers(time.Second, "")), cfg)
		_, _ = belfry.Do(t.Context(), svc, "")
		elapse(time.Minute)
		if s := svc.Stats(); s.Hedges != 2 {
			t.Errorf("%+v", s)
		}
	})
	bubble(t, "when all in flight have failed, no further one is waited for", func(t *testing.T) {
		cfg := after()
		cfg.MaxHedges = 10
		svc := hedge.New(attempts(fails(12*ms, errBoom), fails(4*ms, errBoom)), cfg)
		begin := time.Now()
		if _, err := belfry.Do(t.Context(), svc, ""); !errors.Is(err, errBoom) || time.Since(begin) != 14*ms {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		elapse(time.Minute)
		if s := svc.Stats(); s.Hedges != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A rival takes the last of a budget while room for an extra attempt is reserved.
type rival struct {
	belfry.Service[string, string]
	takes func() bool
	n     int
}

func (r *rival) Acquire(ctx context.Context) (belfry.Permit, error) {
	if r.n++; r.n == 2 && !r.takes() {
		return belfry.Permit{}, errors.New("nothing was left to take")
	}
	return r.Service.Acquire(ctx)
}

func TestBudget(t *testing.T) {
	type service = belfry.Service[string, string]
	bubble(t, "D44 a uniform slow-down does not double the load", func(t *testing.T) {
		took := 10 * ms
		svc := hedge.New(belfry.Of(func(ctx context.Context, _ string) (string, error) { return answers(took, "")(ctx) }),
			hedge.Config{Percentile: 0.95, Period: 10 * time.Second, Budget: budget.New(budget.Config{Ratio: 0.1, NoReserve: true})})
		for range 2000 {
			_, _ = belfry.Do(t.Context(), svc, "")
		}
		if d := svc.Stats().Delay; d == 0 {
			t.Fatal("nothing was learnt")
		}
		was := svc.Stats()
		took *= 5
		for range 100 { // within the period in which the old percentile counts
			_, _ = belfry.Do(t.Context(), svc, "")
		}
		s := svc.Stats()
		earned := 0.1 * 1100 // successes of ten seconds
		if hedges := float64(s.Hedges - was.Hedges); hedges > earned || s.OutOfBudget+s.Hedges == was.OutOfBudget+was.Hedges {
			t.Errorf("%v hedges for 100 calls, earned %v: %+v", hedges, earned, s)
		}
	})
	none := budget.New(budget.Config{NoRatio: true, NoReserve: true})
	last := budget.New(budget.Config{NoRatio: true, Reserve: 0.1}) // one in ten seconds
	for _, c := range []struct {
		name   string
		budget *budget.Budget
		over   func(service) service
	}{
		{"D44 an empty budget reserves nothing, and the original goes on", none, func(inner service) service { return inner }},
		{"what somebody else has taken meanwhile is not spent twice", last, func(inner service) service { return &rival{Service: inner, takes: last.Withdraw} }},
	} {
		bubble(t, c.name, func(t *testing.T) {
			backend, inner := belfrytest.NewBackend[string, string](t)
			svc := hedge.New(c.over(inner), hedge.Config{Delay: 10 * ms, Budget: c.budget})
			backend.Allow(2)
			got := do(t.Context(), svc, "a")
			r := backend.Expect("a")
			elapse(time.Minute)
			backend.ExpectNone()
			r.Answer("b")
			if a := done(t, got); a.res != "b" {
				t.Errorf("%v", a)
			}
			if s := svc.Stats(); s.OutOfBudget != 1 || s.Hedges != 0 || backend.Free() != 1 {
				t.Errorf("%+v, %d are free", s, backend.Free())
			}
		})
	}
	bubble(t, "a success deposits once, unless somebody else does", func(t *testing.T) {
		for _, elsewhere := range []bool{false, true} {
			for _, first := range []time.Duration{0, 20 * ms} {
				cfg := hedge.Config{Delay: 10 * ms, Budget: budget.New(budget.Config{}), NoDeposit: elsewhere}
				svc := hedge.New(attempts(answers(first, ""), answers(0, "")), cfg)
				_, _ = belfry.Do(t.Context(), svc, "")
				want := uint64(1)
				if elsewhere {
					want = 0
				}
				if got := cfg.Budget.Stats().Deposits; got != want {
					t.Errorf("first takes %v: %d deposits, want %d", first, got, want)
				}
			}
		}
	})
	bubble(t, "a failure deposits nothing", func(t *testing.T) {
		cfg := hedge.Config{Delay: 10 * ms, Budget: budget.New(budget.Config{})}
		svc := hedge.New(attempts(fails(20*ms, errBoom)), cfg)
		_, _ = belfry.Do(t.Context(), svc, "")
		if got := cfg.Budget.Stats(); got.Deposits != 0 || got.Withdrawals != 1 {
			t.Errorf("%+v", got)
		}
	})
	bubble(t, "what is not ready is not paid for", func(t *testing.T) {
		backend, inner := belfrytest.NewBackend[string, string](t)
		cfg := hedge.Config{Delay: 10 * ms, Budget: budget.New(budget.Config{})}
		svc := hedge.New(inner, cfg)
		backend.Allow(1)
		got := do(t.Context(), svc, "a")
		r := backend.Expect("a")
		elapse(time.Second)
		if backend.Waiting() != 0 {
			t.Error("a hedge queues")
		}
		backend.Allow(1)
		backend.ExpectNone()
		r.Answer("b")
		done(t, got)
		if s := svc.Stats(); s.NotReady != 1 || cfg.Budget.Stats().Withdrawals != 0 || backend.Free() != 1 {
			t.Errorf("%+v, %+v", s, cfg.Budget.Stats())
		}
	})
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  hedge.Config
		want string
	}{
		{hedge.Config{}, ""},
		{hedge.Config{Delay: 1, MaxHedges: 10, WaitLosers: true}, ""},
		{hedge.Config{Percentile: 0.999, MinSamples: 1, Period: time.Hour, Detach: true}, ""},
		{hedge.Config{Delay: -1}, "hedge: delay must be at least 0, got -1ns"},
		{hedge.Config{Percentile: 1}, "hedge: percentile must be above 0 and below 1, or 0 for the default, got 1"},
		{hedge.Config{Percentile: 95}, "hedge: percentile must be above 0 and below 1, or 0 for the default, got 95"},
		{hedge.Config{Percentile: -0.5}, "hedge: percentile must be above 0 and below 1, or 0 for the default, got -0.5"},
		{hedge.Config{Percentile: nan()}, "hedge: percentile must be above 0 and below 1, or 0 for the default, got NaN"},
		{hedge.Config{Percentile: 0.5, Delay: 1}, "hedge: percentile must be 0 with a delay, got 0.5"},
		{hedge.Config{MinSamples: -1}, "hedge: min samples must be at least 1, or 0 for the default, got -1"},
		{hedge.Config{Period: -1}, "hedge: period must be within 1ms and 1h, got -1ns"},
		{hedge.Config{Period: 1}, "hedge: period must be within 1ms and 1h, got 1ns"},
		{hedge.Config{Period: 2 * time.Hour}, "hedge: period must be within 1ms and 1h, got 2h0m0s"},
		{hedge.Config{MaxHedges: -1}, "hedge: max hedges must be within 1 and 10, or 0 for the default, got -1"},
		{hedge.Config{MaxHedges: 11}, "hedge: max hedges must be within 1 and 10, or 0 for the default, got 11"},
		{hedge.Config{Detach: true, WaitLosers: true}, "hedge: detach must be false with wait losers"},
	} {
		name := "D47 a Config is accepted"
		if c.want != "" {
			name = "D47 a Config is refused by name and range: " + strings.TrimPrefix(c.want, "hedge: ")
		}
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := c.cfg.Validate(); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for what, f := range map[string]func(){
				"New":   func() { hedge.New(attempts(nil), c.cfg) },
				"Layer": func() { hedge.Layer[string, string](c.cfg) },
			} {
				if got := panics(f); got != c.want {
					t.Errorf("%s panics with %q, want %q", what, got, c.want)
				}
			}
		})
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

// panics returns the text of the error that f panics with.
func panics(f func()) (text string) {
	defer func() {
		if err, ok := recover().(error); ok {
			text = err.Error()
		}
	}()
	f()
	return ""
}

func TestLayer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		layer := hedge.Layer[string, string](after())
		svc := layer(attempts(answers(time.Second, "first"), answers(0, "second")))
		if res, err := belfry.Do(t.Context(), svc, ""); res != "second" || err != nil {
			t.Errorf("%q, %v", res, err)
		}
	})
}

// A faulty service does what its function does for the nth attempt, from 1, also if that is to refuse.
type faulty[Res any] struct {
	n    atomic.Int32
	call func(ctx context.Context, n int) (Res, error)
}

func (*faulty[Res]) Acquire(context.Context) (belfry.Permit, error) { return belfry.Permit{}, nil }
func (*faulty[Res]) Release(belfry.Permit)                          {}
func (f *faulty[Res]) Call(ctx context.Context, _ belfry.Permit, _ string) (Res, error) {
	return f.call(ctx, int(f.n.Add(1)))
}
