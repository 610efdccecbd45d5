package limit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/limit"
)

// workers answers with so many workers, of which each request takes one for a while.
type workers struct {
	mu   sync.Mutex
	rng  *rand.Rand
	free chan struct{}
	mean time.Duration
}

func newWorkers(n int, mean time.Duration) *workers {
	w := &workers{rng: rand.New(rand.NewPCG(7, 7)), free: make(chan struct{}, n), mean: mean}
	for range n {
		w.free <- struct{}{}
	}
	return w
}

func (w *workers) serve(ctx context.Context, s string) (string, error) {
	<-w.free
	w.mu.Lock()
	d := time.Duration(w.rng.ExpFloat64() * float64(w.mean))
	w.mu.Unlock()
	time.Sleep(d)
	w.free <- struct{}{}
	return s, nil
}

// load keeps n callers calling for d.
func load(t *testing.T, svc belfry.Service[string, string], n int, d time.Duration) (answered int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for {
				_, err := belfry.Do(ctx, svc, "")
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				answered++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return answered
}

func TestAdaptive(t *testing.T) {
	bubble(t, "finds what the server can take, up and down", func(t *testing.T) {
		w := newWorkers(40, 50*ms)
		l := limit.NewAdaptiveLimiter(limit.AdaptiveConfig{})
		svc := limit.NewAdaptive(belfry.Of(w.serve), l)
		load(t, svc, 100, 15*time.Second)
		if s := l.Stats(); s.Limit < 40 || s.Limit > 99 {
			t.Errorf("40 workers: %+v", s)
		}
		if n := load(t, svc, 100, 15*time.Second); n < 11400 { // 95 % of what 40 workers can do
			t.Errorf("%d answers in 15 s, want about 12000", n)
		}
		for range 30 {
			<-w.free // workers are lost
		}
		load(t, svc, 100, 15*time.Second)
		if s := l.Stats(); s.Limit < 10 || s.Limit > 60 {
			t.Errorf("10 workers: %+v", s)
		}
		for range 30 {
			w.free <- struct{}{}
		}
		load(t, svc, 100, 15*time.Second)
		if n := load(t, svc, 100, 15*time.Second); n < 11400 {
			t.Errorf("%d answers in 15 s when the workers are back, want about 12000", n)
		}
		if s := l.Stats(); s.InFlight+s.Reserved+s.Waiting != 0 || s.Base < 25*ms || s.Base > 150*ms {
			t.Errorf("in the end: %+v", s)
		}
	})

	bubble(t, "fast failures and refusals do not move the limit, slow failures do", func(t *testing.T) {
		fail := errBoom
		took := time.Duration(0)
		inner := belfry.Of(func(context.Context, string) (string, error) { time.Sleep(took); return "", fail })
		l := limit.NewAdaptiveLimiter(limit.AdaptiveConfig{Initial: 50})
		svc := limit.NewAdaptive(inner, l)
		calls := func(n int) {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					for range n {
						_, _ = belfry.Do(t.Context(), svc, "")
					}
				})
			}
			wg.Wait()
		}
		fail, took = nil, 100*ms
		calls(10)
		known := l.Stats()
		if known.Base.Round(ms) != 100*ms {
			t.Fatalf("%+v", known)
		}
		fail, took = errBoom, ms
		calls(1000)
		if s := l.Stats(); s.Limit != known.Limit || s.Base != known.Base {
			t.Errorf("after fast failures: %+v, before %+v", s, known)
		}
		fail, took = context.DeadlineExceeded, 10*time.Second
		calls(10)
		if s := l.Stats(); s.Limit >= known.Limit/2 {
			t.Errorf("after slow failures: %+v, before %+v", s, known)
		}
	})

	bubble(t, "the limit stays in its bounds", func(t *testing.T) {
		w := newWorkers(40, 50*ms)
		l := limit.NewAdaptiveLimiter(limit.AdaptiveConfig{Min: 2, Max: 8})
		load(t, limit.NewAdaptive(belfry.Of(w.serve), l), 50, 10*time.Second)
		if s := l.Stats(); s.Limit != 8 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAdaptiveContract(t *testing.T) {
	immediate := belfry.Semantics[int, int]{Until: func(res int, done func()) int { done(); return res }}
	for name, c := range map[string]struct {
		cfg    limit.AdaptiveConfig
		trait  belfrytest.Trait
		traits belfry.Semantics[int, int]
	}{
		"adaptive": {limit.AdaptiveConfig{Window: ms}, belfrytest.Refuses, belfry.Semantics[int, int]{}},
		"fixed":    {limit.AdaptiveConfig{Min: 3, Max: 3, Window: ms}, belfrytest.Caps(3), immediate},
	} {
		t.Run(name, func(t *testing.T) {
			belfrytest.TestLayer(t, func(t testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
				l := limit.NewAdaptiveLimiter(c.cfg)
				return limit.NewAdaptive(inner, l, c.traits), func() {
					if s := l.Stats(); s.InFlight+s.Reserved+s.Waiting != 0 {
						t.Errorf("left behind: %+v", s)
					}
				}
			}, c.trait)
		})
	}
}

func TestAdaptiveRefuses(t *testing.T) {
	for _, c := range []struct {
		cfg  limit.AdaptiveConfig
		want string
	}{
		{limit.AdaptiveConfig{Min: -1}, "limit: min must be 1 to 1000000, or 0 for 1, got -1"},
		{limit.AdaptiveConfig{Min: 5, Max: 4}, "limit: max must be min, which is 5, to 1000000, or 0 for 1000, got 4"},
		{limit.AdaptiveConfig{Max: 2e6}, "limit: max must be min, which is 1, to 1000000, or 0 for 1000, got 2000000"},
		{limit.AdaptiveConfig{Initial: -1}, "limit: initial must be min to max, which are 1 and 1000, or 0 for 4, got -1"},
		{limit.AdaptiveConfig{Initial: 9, Max: 8}, "limit: initial must be min to max, which are 1 and 8, or 0 for 4, got 9"},
		{limit.AdaptiveConfig{Window: -1}, "limit: window must be 1ms to 1m, or 0 for 100ms, got -1ns"},
		{limit.AdaptiveConfig{Window: time.Hour}, "limit: window must be 1ms to 1m, or 0 for 100ms, got 1h0m0s"},
	} {
		if err := c.cfg.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
		func() {
			defer func() {
				if err, _ := recover().(error); err == nil || err.Error() != c.want {
					t.Errorf("panics with %v, want %s", err, c.want)
				}
			}()
			limit.NewAdaptiveLimiter(c.cfg)
		}()
	}
	for _, cfg := range []limit.AdaptiveConfig{{}, {Min: 2000}, {Max: 1}, {Min: 7, Max: 7}} {
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	}
	for name, f := range map[string]func(){
		"NewAdaptive":   func() { limit.NewAdaptive(belfry.Of(open), nil) },
		"AdaptiveLayer": func() { limit.AdaptiveLayer[int, int](nil) },
	} {
		func() {
			defer func() {
				if err, _ := recover().(error); err == nil || err.Error() != "limit: adaptive limiter must not be nil" {
					t.Errorf("%s: got %v", name, err)
				}
			}()
			f()
		}()
	}
}

// TestAdaptiveHooks passes hooks on to the line.
func TestAdaptiveHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var admitted int
		var refused []error
		l := limit.NewAdaptiveLimiter(limit.AdaptiveConfig{
			Initial: 1,
			OnAdmit: func(time.Duration) { admitted++ }, OnReject: func(err error) { l := len(refused); refused = append(refused[:l:l], err) },
		})
		b, inner := newBackend()
		svc := limit.NewAdaptive(inner, l)
		c := call(t.Context(), svc, "1")
		r := b.next(t)
		_, err := belfry.TryDo(t.Context(), svc, "2")
		r.answer <- ""
		done(t, "1", c)
		if admitted != 1 || len(refused) != 1 || refused[0] != err || !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("%d admitted, refused %v, got %v", admitted, refused, err)
		}
	})
}
