package limit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/limit"
)

func itself(key string) string { return key }

func perKey(n int, per time.Duration, cfg limit.KeyedConfig) (*limit.KeyedLimiter[string], belfry.Service[string, string]) {
	l := limit.NewKeyedLimiter[string](n, per, cfg)
	return l, limit.NewRatePerKey(belfry.Of(func(_ context.Context, s string) (string, error) { return s, nil }), l, itself)
}

// calls returns how many calls of key are answered at once.
func calls(t *testing.T, svc belfry.Service[string, string], key string) (n int) {
	t.Helper()
	for {
		_, err := belfry.Do(t.Context(), svc, key)
		if err != nil {
			wantRate(t, err, belfry.ErrNotReady)
			return n
		}
		n++
	}
}

func TestRatePerKey(t *testing.T) {
	bubble(t, "each key has its own burst and rate, and nobody waits", func(t *testing.T) {
		l, svc := perKey(2, time.Second, limit.KeyedConfig{})
		start := time.Now()
		if a, b := calls(t, svc, "a"), calls(t, svc, "b"); a != 2 || b != 2 {
			t.Errorf("%d and %d calls, want 2 each", a, b)
		}
		time.Sleep(400 * ms)
		_, err := belfry.Do(t.Context(), svc, "a")
		if after := wantRate(t, err, belfry.ErrNotReady); after != 100*ms || time.Since(start) != 400*ms {
			t.Errorf("come again after %v, said after %v", after, time.Since(start))
		}
		time.Sleep(100 * ms)
		if a := calls(t, svc, "a"); a != 1 {
			t.Errorf("%d calls, want 1", a)
		}
		if got, want := l.Stats(), (limit.KeyedStats{Burst: 2, Keys: 2, MaxKeys: 65536, Admitted: 5, Rejected: 4}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})

	bubble(t, "at the bound a key is forgotten only when its burst is whole", func(t *testing.T) {
		l, svc := perKey(1, time.Second, limit.KeyedConfig{Burst: 2, MaxKeys: 2})
		calls(t, svc, "a") // whole again after 2 s
		if _, err := belfry.Do(t.Context(), svc, "b"); err != nil {
			t.Error(err) // after 1 s
		}
		_, err := belfry.Do(t.Context(), svc, "c")
		if after := wantRate(t, err, belfry.ErrNotReady); after != time.Second {
			t.Errorf("come again after %v", after)
		}
		time.Sleep(time.Second)
		if n := calls(t, svc, "c"); n != 2 {
			t.Errorf("%d calls of the third key, want 2", n)
		}
		if n := calls(t, svc, "a"); n != 1 {
			t.Errorf("%d calls of a key that is remembered, want 1", n)
		}
		if n := calls(t, svc, "b"); n != 0 {
			t.Errorf("%d calls of a key that was forgotten, want none while there are too many", n)
		}
		if got, want := l.Stats(), (limit.KeyedStats{Burst: 2, Keys: 2, MaxKeys: 2, Admitted: 6, Rejected: 3, Crowded: 2}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})

	bubble(t, "an inner service that is not ready costs no token", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		l := limit.NewKeyedLimiter[string](1, time.Hour, limit.KeyedConfig{})
		svc := limit.NewRatePerKey(inner, l, itself)
		b.FailAcquire(errBoom)
		_, err := belfry.Do(t.Context(), svc, "a")
		r, ok := errors.AsType[*belfry.Rejection](err)
		if !ok || !errors.Is(err, errBoom) || r.Layer == "rate" { // which would be answered 429
			t.Errorf("got %v", err)
		}
		b.Allow(1)
		c := call(t.Context(), svc, "a")
		b.Expect("a").Answer("b")
		if r := done(t, "a", c); r.err != nil {
			t.Error(r.err)
		}
		if s := l.Stats(); s.Refunded != 1 {
			t.Errorf("%+v", s)
		}
	})

	bubble(t, "a context that is done takes nothing", func(t *testing.T) {
		l, svc := perKey(1, time.Hour, limit.KeyedConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		permit, err := svc.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := svc.Call(ctx, permit, "a"); !errors.Is(err, context.Canceled) || !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
		if s := l.Stats(); s.Admitted != 0 || s.Keys != 0 {
			t.Errorf("%+v", s)
		}
	})

	bubble(t, "refusals are told of", func(t *testing.T) {
		var told []error
		_, svc := perKey(1, time.Hour, limit.KeyedConfig{OnReject: func(err error) { told = append(told, err) }})
		_, _ = belfry.Do(t.Context(), svc, "a")
		_, err := belfry.Do(t.Context(), svc, "a")
		if len(told) != 1 || told[0] != err {
			t.Errorf("told of %v, want %v", told, err)
		}
	})
}

// TestKeysOverTime compares a limiter that may remember few keys with one that may remember all: it never grants more.
func TestKeysOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 2))
		few, a := perKey(3, time.Second, limit.KeyedConfig{MaxKeys: 8})
		all, b := perKey(3, time.Second, limit.KeyedConfig{MaxKeys: 1000})
		granted := 0
		for range 20000 {
			key := strconv.Itoa(rng.IntN(12) * rng.IntN(12))
			_, errA := belfry.Do(t.Context(), a, key)
			if errA == nil {
				granted++
				if _, err := belfry.Do(t.Context(), b, key); err != nil {
					t.Fatalf("seed %d: a burst that was not waited for: %v", seed, err)
				}
			}
			time.Sleep(time.Duration(rng.Int64N(int64(100 * ms))))
		}
		if s := few.Stats(); s.Keys > 8 || s.Crowded == 0 || granted < 5000 || all.Stats().Keys > 144 {
			t.Errorf("seed %d: %d granted, %+v", seed, granted, s)
		}
	})
}

func TestKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, svc := perKey(1, time.Second, limit.KeyedConfig{})
		for i := range 1000 {
			calls(t, svc, strconv.Itoa(i))
		}
		time.Sleep(time.Second)
		for i := range 600 { // two go for one that comes
			calls(t, svc, "later"+strconv.Itoa(i))
		}
		if s := l.Stats(); s.Keys != 600 {
			t.Errorf("%d keys are remembered, want 600", s.Keys)
		}
	})
}

func TestRatePerKeyEnds(t *testing.T) {
	for name, f := range map[string]func() error{
		"fails":              func() error { return errBoom },
		"panics":             func() error { panic("boom") },
		"ends the goroutine": func() error { runtime.Goexit(); return nil },
	} {
		l := limit.NewKeyedLimiter[string](1, time.Hour, limit.KeyedConfig{})
		svc := limit.NewRatePerKey(faulty{acquire: f}, l, itself)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			_, _ = belfry.Do(t.Context(), svc, "")
		}()
		<-ended
		if s := l.Stats(); s.Admitted != 1 || s.Refunded != 1 {
			t.Errorf("Acquire %s: %+v", name, s)
		}
	}
}

func TestRatePerKeyParallel(t *testing.T) {
	l, svc := perKey(1, time.Hour, limit.KeyedConfig{Burst: 50, MaxKeys: 4})
	var wg sync.WaitGroup
	var mu sync.Mutex
	granted := map[string]int{}
	for range 8 {
		wg.Go(func() {
			for i := range 800 {
				key := strconv.Itoa(i % 6)
				if _, err := belfry.Do(t.Context(), svc, key); err == nil {
					mu.Lock()
					granted[key]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if len(granted) != 4 {
		t.Errorf("%d keys were granted, want 4: %v", len(granted), granted)
	}
	for key, n := range granted {
		if n != 50 {
			t.Errorf("%d calls of %s, want 50", n, key)
		}
	}
	if s := l.Stats(); s.Admitted != 200 || s.Keys != 4 {
		t.Errorf("%+v", s)
	}
}

func TestRatePerKeyContract(t *testing.T) {
	belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		l := limit.NewKeyedLimiter[int](1000, time.Second, limit.KeyedConfig{MaxKeys: 2})
		return limit.NewRatePerKey(inner, l, func(n int) int { return n % 2 }), nil
	}, belfrytest.Late)
}

func TestKeyedRefuses(t *testing.T) {
	for _, c := range []struct {
		cfg  limit.KeyedConfig
		want string
	}{
		{limit.KeyedConfig{MaxKeys: -1}, "limit: max keys must be 1 to 100000000, or 0 for 65536, got -1"},
		{limit.KeyedConfig{MaxKeys: 1e9}, "limit: max keys must be 1 to 100000000, or 0 for 65536, got 1000000000"},
		{limit.KeyedConfig{Burst: -1}, "limit: burst must be 1 to 1000000, or 0 for as many as in a period, got -1"},
	} {
		if err := limit.ValidateKeyed(1, time.Second, c.cfg); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	l := limit.NewKeyedLimiter[string](1, time.Second, limit.KeyedConfig{})
	for want, f := range map[string]func(){
		"limit: period of the rate must be 1µs to 24h, got 0s": func() { limit.NewKeyedLimiter[string](1, 0, limit.KeyedConfig{}) },
		"limit: keyed limiter must not be nil":                 func() { limit.RatePerKeyLayer[string, int](nil, itself) },
		"limit: key must not be nil":                           func() { limit.NewRatePerKey(belfry.Of(open), l, nil) },
	} {
		func() {
			defer func() {
				if err, _ := recover().(error); err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
			}()
			f()
		}()
	}
}
