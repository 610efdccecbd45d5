package limit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/limit"
)

const ms = time.Millisecond

// rated returns a service that answers at once, at a rate.
func rated(n int, per time.Duration, burst int) (*limit.RateLimiter, belfry.Service[string, string]) {
	l := limit.NewRateLimiter(n, per, limit.RateConfig{Burst: burst})
	return l, limit.NewRate(belfry.Of(func(_ context.Context, s string) (string, error) { return s, nil }), l)
}

// burst returns how many calls go at once.
func burst(t *testing.T, svc belfry.Service[string, string]) (n int) {
	t.Helper()
	for {
		_, err := belfry.TryDo(t.Context(), svc, "")
		if err != nil {
			wantRate(t, err, belfry.ErrNotReady)
			return n
		}
		n++
	}
}

// wantRate fails unless err is a refusal by rate, for the cause, and says when to come again.
func wantRate(t *testing.T, err, cause error) time.Duration {
	t.Helper()
	r, ok := errors.AsType[*belfry.Rejection](err)
	if !ok || r.Layer != "rate" || r.RetryAfter <= 0 || !errors.Is(err, cause) {
		t.Errorf("got %v, want a refusal by rate for %v", err, cause)
		return 0
	}
	return r.RetryAfter
}

func wantRateStats(t *testing.T, l *limit.RateLimiter, want limit.RateStats) {
	t.Helper()
	synctest.Wait()
	if got := l.Stats(); got != want {
		t.Errorf("stats\n got %+v\nwant %+v", got, want)
	}
}

func TestRate(t *testing.T) {
	bubble(t, "R1 the second call waits until its token is due", func(t *testing.T) {
		b, inner := newBackend()
		svc := limit.NewRate(inner, limit.NewRateLimiter(1, 100*ms, limit.RateConfig{}))
		one := call(t.Context(), svc, "1")
		b.next(t).answer <- ""
		done(t, "the first", one)
		two := call(t.Context(), svc, "2")
		b.none(t)
		time.Sleep(100*ms - 1)
		b.none(t)
		time.Sleep(time.Nanosecond)
		b.next(t).answer <- ""
		done(t, "the second", two)
	})

	bubble(t, "R2 what was not used is there again, up to the burst", func(t *testing.T) {
		l, svc := rated(3, 100*ms, 0)
		if _, err := belfry.TryDo(t.Context(), svc, ""); err != nil {
			t.Error(err)
		}
		time.Sleep(100 * ms)
		wantRateStats(t, l, limit.RateStats{Burst: 3, Free: 3, Admitted: 1})
		if n := burst(t, svc); n != 3 {
			t.Errorf("%d calls at once, want 3", n)
		}
		time.Sleep(time.Hour)
		if n := burst(t, svc); n != 3 {
			t.Errorf("%d calls at once after an hour, want 3", n)
		}
	})

	bubble(t, "D49 X16 no double burst where two periods meet", func(t *testing.T) {
		_, svc := rated(10, time.Second, 0)
		if _, err := belfry.TryDo(t.Context(), svc, ""); err != nil {
			t.Error(err)
		}
		time.Sleep(990 * ms)
		n := 0
		for range 12 { // 11 ms, in steps of one
			n += burst(t, svc)
			time.Sleep(ms)
		}
		if n != 10 {
			t.Errorf("%d calls in 11 ms, want the burst of 10", n)
		}
	})

	bubble(t, "D49 in no span more than the burst and what the span brings", func(t *testing.T) {
		const tokens, most = 7, 4
		_, svc := rated(tokens, 10*ms, most)
		var times []time.Duration
		start := time.Now()
		for range 3000 {
			for range burst(t, svc) {
				times = append(times, time.Since(start))
			}
			time.Sleep(time.Duration(len(times)%5+1) * 300 * time.Microsecond)
		}
		for i := range times {
			for j := i; j < min(i+40, len(times)); j++ {
				if got, want := j-i+1, most+int((times[j]-times[i])*tokens/(10*ms)); got > want {
					t.Fatalf("%d calls within %v, want at most %d", got, times[j]-times[i], want)
				}
			}
		}
		if len(times) < 1500 {
			t.Errorf("only %d calls", len(times))
		}
	})

	bubble(t, "D50 a rate limiter is a plain value that services of all types share", func(t *testing.T) {
		l := limit.NewRateLimiter(1, time.Second, limit.RateConfig{Burst: 2})
		words := limit.RateLayer[string, string](l)(belfry.Of(func(_ context.Context, s string) (string, error) { return s, nil }))
		numbers := limit.NewRate(belfry.Of(func(_ context.Context, n int) (int, error) { return n, nil }), l)
		if _, err := belfry.TryDo(t.Context(), numbers, 1); err != nil {
			t.Error(err)
		}
		if n := burst(t, words); n != 1 {
			t.Errorf("%d calls left, want 1", n)
		}
		if after := wantRate(t, func() error { _, err := belfry.TryDo(t.Context(), numbers, 1); return err }(), belfry.ErrNotReady); after != time.Second {
			t.Errorf("come again after %v", after)
		}
		if got, want := numbers.Stats(), l.Stats(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})

	bubble(t, "D51 a bounded wait ends with an error that says when the next call may go", func(t *testing.T) {
		l, svc := rated(1, time.Second, 1)
		burst(t, svc)
		ctx, cancel := context.WithTimeout(t.Context(), 300*ms)
		defer cancel()
		start := time.Now()
		_, err := belfry.Do(ctx, svc, "")
		if after := wantRate(t, err, context.DeadlineExceeded); after != 700*ms || time.Since(start) != 300*ms {
			t.Errorf("after %v, again after %v", time.Since(start), after)
		}
		wantRateStats(t, l, limit.RateStats{Burst: 1, Next: 700 * ms, Admitted: 1, Rejected: 1, Cancelled: 1})
	})
}

func TestRateLine(t *testing.T) {
	// crowd makes n callers wait in line, one by one.
	crowd := func(t *testing.T, svc belfry.Service[string, string], n int) (calls []<-chan result, cancels []context.CancelFunc) {
		t.Helper()
		for range n {
			ctx, cancel := context.WithCancel(t.Context())
			calls, cancels = append(calls, call(ctx, svc, "")), append(cancels, cancel)
			synctest.Wait()
		}
		return calls, cancels
	}

	bubble(t, "who waits is served in order, each when its token is due", func(t *testing.T) {
		l, svc := rated(3, time.Second, 1)
		burst(t, svc)
		calls, _ := crowd(t, svc, 4)
		wantRateStats(t, l, limit.RateStats{Burst: 1, Next: 1_666_666_667, Waiting: 4, Admitted: 1, Rejected: 1})
		start := time.Now()
		for i, c := range calls {
			done := <-c
			// With a burst of one a pause is never shorter than a third of a second.
			if took := time.Since(start); done.err != nil || took != time.Duration(i+1)*333_333_334 {
				t.Errorf("call %d: %v, after %v", i, done.err, took)
			}
		}
		time.Sleep(time.Second)
		wantRateStats(t, l, limit.RateStats{Burst: 1, Free: 1, Admitted: 5, Rejected: 1})
	})

	bubble(t, "who leaves has nothing reserved, and those behind move up", func(t *testing.T) {
		l, svc := rated(1, time.Second, 1)
		burst(t, svc)
		calls, cancels := crowd(t, svc, 4)
		time.Sleep(500 * ms)
		cancels[0]()
		cancels[2]()
		for _, i := range []int{0, 2} {
			if after := wantRate(t, done(t, "who left", calls[i]).err, context.Canceled); after != 2500*ms && after != 3500*ms {
				t.Errorf("come again after %v", after)
			}
		}
		start := time.Now()
		<-calls[1]
		if took := time.Since(start); took != 500*ms {
			t.Errorf("the second went after %v", took)
		}
		<-calls[3]
		if took := time.Since(start); took != 1500*ms {
			t.Errorf("the fourth went after %v", took)
		}
		wantRateStats(t, l, limit.RateStats{Burst: 1, Next: time.Second, Admitted: 3, Rejected: 1, Cancelled: 2})
	})

	bubble(t, "NoWait is not granted what is due for a waiter", func(t *testing.T) {
		l, svc := rated(1, time.Second, 1)
		burst(t, svc)
		calls, _ := crowd(t, svc, 2)
		time.Sleep(time.Second) // both become ready to run now: the timer of the line, and this goroutine
		if n := burst(t, svc); n != 0 {
			t.Errorf("%d have barged in", n)
		}
		done(t, "the first", calls[0])
		_, err := belfry.TryDo(t.Context(), svc, "")
		if after := wantRate(t, err, belfry.ErrNotReady); after != 2*time.Second {
			t.Errorf("come again after %v, behind the one who waits", after)
		}
		<-calls[1]
		wantRateStats(t, l, limit.RateStats{Burst: 1, Next: time.Second, Admitted: 3, Rejected: 3})
	})

	bubble(t, "a cancel at the moment of the token", func(t *testing.T) {
		for range 50 {
			l, svc := rated(1, time.Second, 1)
			burst(t, svc)
			calls, cancels := crowd(t, svc, 2)
			time.Sleep(time.Second)
			cancels[0]() // it has the token, or has left and the second has it
			first := <-calls[0]
			synctest.Wait()
			s := l.Stats()
			if first.err == nil && s.Waiting != 1 || first.err != nil && s.Waiting+int(s.Cancelled) != 1 {
				t.Fatalf("%v, %+v", first.err, s)
			}
			cancels[1]()
			<-calls[1]
		}
	})

	bubble(t, "a token that comes back is for the first in line", func(t *testing.T) {
		l, svc := rated(1, time.Hour, 1)
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		calls, _ := crowd(t, svc, 1)
		pending(t, "who waits", calls[0])
		svc.Release(permit)
		if r := done(t, "who waits", calls[0]); r.err != nil {
			t.Error(r.err)
		}
		wantRateStats(t, l, limit.RateStats{Burst: 1, Next: time.Hour, Admitted: 2, Refunded: 1})
	})

	bubble(t, "a rate that is changed counts for those who wait", func(t *testing.T) {
		l, svc := rated(1, time.Hour, 2)
		burst(t, svc)
		calls, _ := crowd(t, svc, 2)
		time.Sleep(time.Minute)
		if err := l.Set(1, time.Second, 5); err != nil {
			t.Fatal(err)
		}
		for _, c := range calls { // two of five are missing
			done(t, "who waits", c)
		}
		wantRateStats(t, l, limit.RateStats{Burst: 5, Free: 1, Admitted: 4, Rejected: 1})
		if err := l.Set(0, time.Second, 0); err == nil {
			t.Error("a rate of 0 was accepted")
		}
	})
}

func TestRateRefunds(t *testing.T) {
	bubble(t, "an inner Acquire that fails costs no token", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		l := limit.NewRateLimiter(1, time.Hour, limit.RateConfig{})
		svc := limit.NewRate(inner, l)
		for range 3 {
			b.FailAcquire(errBoom)
			if _, err := svc.Acquire(t.Context()); !errors.Is(err, errBoom) {
				t.Errorf("got %v", err)
			}
		}
		wantRateStats(t, l, limit.RateStats{Burst: 1, Free: 1, Admitted: 3, Refunded: 3})
	})

	bubble(t, "a failure after time has replaced the token gives nothing back", func(t *testing.T) {
		l := limit.NewRateLimiter(1, time.Second, limit.RateConfig{Burst: 2})
		svc := limit.NewRate(closedDoor{}, l)
		ctx, cancel := context.WithCancel(t.Context())
		waiter := acquire(ctx, svc)
		synctest.Wait()
		time.Sleep(time.Minute)
		others := limit.NewRate(belfry.Of(length), l)
		for range 2 {
			if _, err := belfry.TryDo(t.Context(), others, ""); err != nil {
				t.Error(err)
			}
		}
		cancel()
		done(t, "who waits inside", waiter)
		wantRateStats(t, l, limit.RateStats{Burst: 2, Next: time.Second, Admitted: 3})
	})

	bubble(t, "a Release gives back a burst at most in the time of a burst", func(t *testing.T) {
		const most = 3
		l, svc := rated(1, time.Second, most)
		var held []belfry.Permit
		for range 20 { // reserved over time, given back together
			permit, err := svc.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, permit)
		}
		var times []time.Duration
		start := time.Now()
		for _, permit := range held {
			svc.Release(permit)
			for range burst(t, svc) {
				times = append(times, time.Since(start))
			}
		}
		if len(times) != most {
			t.Errorf("%d calls at once, want %d", len(times), most)
		}
		if s := l.Stats(); s.Refunded != most {
			t.Errorf("%+v", s)
		}
	})

	bubble(t, "reservations that come to nothing, for hours", func(t *testing.T) {
		_, svc := rated(1, time.Second, 5)
		var back []time.Duration
		start, last := time.Now(), 5
		for range 4000 {
			r, err := belfry.Reserve(belfry.NoWait(t.Context()), svc)
			if err == nil {
				before := svc.(*limit.Rate[string, string]).Stats().Refunded
				r.Release()
				if svc.(*limit.Rate[string, string]).Stats().Refunded > before {
					back = append(back, time.Since(start))
				}
			}
			time.Sleep(time.Duration(last%7) * 50 * ms)
			last = last*31 + 7
		}
		for i := 5; i < len(back); i++ {
			if back[i]-back[i-5] < 5*time.Second {
				t.Fatalf("6 tokens came back within %v", back[i]-back[i-5])
			}
		}
		if len(back) < 100 {
			t.Errorf("only %d came back", len(back))
		}
	})
}

func TestRateHooks(t *testing.T) {
	bubble(t, "each token, each refusal, and how long it took", func(t *testing.T) {
		var waits []time.Duration
		var refused []error
		var l *limit.RateLimiter
		l = limit.NewRateLimiter(1, time.Second, limit.RateConfig{
			OnAdmit:  func(d time.Duration) { l.Stats(); waits = append(waits, d) },
			OnReject: func(err error) { l.Stats(); refused = append(refused, err) },
		})
		svc := limit.NewRate(belfry.Of(length), l)
		for range 2 {
			if _, err := belfry.Do(t.Context(), svc, ""); err != nil {
				t.Error(err)
			}
		}
		_, unready := belfry.TryDo(t.Context(), svc, "")
		if want := []error{unready}; !slices.Equal(refused, want) || unready == nil {
			t.Errorf("told of %v, want %v", refused, want)
		}
		if want := []time.Duration{0, time.Second}; !slices.Equal(waits, want) {
			t.Errorf("waited %v, want %v", waits, want)
		}
	})

	t.Run("one that panics leaves nothing reserved", func(t *testing.T) {
		l := limit.NewRateLimiter(1, time.Hour, limit.RateConfig{OnAdmit: func(time.Duration) { panic("boom") }})
		func() {
			defer func() { _ = recover() }()
			_, _ = limit.NewRate(belfry.Of(length), l).Acquire(t.Context())
		}()
		if s := l.Stats(); s.Free != 1 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// TestRateEnds gives back a token whatever ends an Acquire.
func TestRateEnds(t *testing.T) {
	for name, f := range map[string]func() error{
		"fails":  func() error { return errBoom },
		"panics": func() error { panic("boom") },
	} {
		l := limit.NewRateLimiter(1, time.Hour, limit.RateConfig{})
		svc := limit.NewRate(faulty{acquire: f}, l)
		func() {
			defer func() { _ = recover() }()
			_, _ = svc.Acquire(t.Context())
		}()
		if s := l.Stats(); s.Free != 1 {
			t.Errorf("Acquire %s: %+v", name, s)
		}
	}
	l := limit.NewRateLimiter(1, time.Hour, limit.RateConfig{})
	svc := limit.NewRate(faulty{release: func() {
		if s := l.Stats(); s.Free != 0 {
			t.Errorf("the token was back before the inner permit: %+v", s)
		}
		panic("boom")
	}}, l)
	permit, _ := svc.Acquire(t.Context())
	func() {
		defer func() { _ = recover() }()
		svc.Release(permit)
	}()
	if s := l.Stats(); s.Free != 1 {
		t.Errorf("Release panics: %+v", s)
	}
}

func TestRateContract(t *testing.T) {
	for name, c := range map[string]struct {
		n, burst int
		per      time.Duration
	}{"quick": {3, 3, time.Second}, "thirds": {3, 2, time.Second}} {
		t.Run(name, func(t *testing.T) {
			belfrytest.TestLayer(t, func(t testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
				l := limit.NewRateLimiter(c.n, c.per, limit.RateConfig{Burst: c.burst})
				return limit.NewRate(inner, l), func() {
					if s := l.Stats(); s.Waiting != 0 {
						t.Errorf("left behind: %+v", s)
					}
				}
			}, belfrytest.Caps(c.burst))
		})
	}
}

func TestRateRefuses(t *testing.T) {
	for _, c := range []struct {
		n    int
		per  time.Duration
		cfg  limit.RateConfig
		want string
	}{
		{0, time.Second, limit.RateConfig{}, "limit: rate must be 1 to 1000000000 in a period, got 0"},
		{-1, time.Second, limit.RateConfig{}, "limit: rate must be 1 to 1000000000 in a period, got -1"},
		{2e9, time.Second, limit.RateConfig{}, "limit: rate must be 1 to 1000000000 in a period, got 2000000000"},
		{1, -time.Second, limit.RateConfig{}, "limit: period of the rate must be 1µs to 24h, got -1s"},
		{1, 25 * time.Hour, limit.RateConfig{}, "limit: period of the rate must be 1µs to 24h, got 25h0m0s"},
		{1, time.Second, limit.RateConfig{Burst: -2}, "limit: burst must be 1 to 1000000, or 0 for as many as in a period, got -2"},
		{1, time.Second, limit.RateConfig{Burst: 2e6}, "limit: burst must be 1 to 1000000, or 0 for as many as in a period, got 2000000"},
		{1, time.Hour, limit.RateConfig{Burst: 9000}, "limit: burst must be one that comes back within a year, got 9000 at 1 in 1h0m0s"},
	} {
		if err := limit.ValidateRate(c.n, c.per, c.cfg); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	t.Run("D47 a period of zero is refused by name, not divided by", func(t *testing.T) {
		defer func() {
			if err, _ := recover().(error); err == nil || err.Error() != "limit: period of the rate must be 1µs to 24h, got 0s" {
				t.Errorf("got %v", err)
			}
		}()
		limit.NewRateLimiter(1, 0, limit.RateConfig{})
	})
	for name, f := range map[string]func(){
		"NewRate":   func() { limit.NewRate(belfry.Of(open), nil) },
		"RateLayer": func() { limit.RateLayer[int, int](nil) },
	} {
		func() {
			defer func() {
				if err, _ := recover().(error); err == nil || err.Error() != "limit: rate limiter must not be nil" {
					t.Errorf("%s: got %v", name, err)
				}
			}()
			f()
		}()
	}
	for _, c := range []struct {
		n     int
		per   time.Duration
		burst int
	}{{1, 24 * time.Hour, 0}, {1e9, time.Microsecond, 0}, {1e9, 24 * time.Hour, 1}} {
		if err := limit.ValidateRate(c.n, c.per, limit.RateConfig{Burst: c.burst}); err != nil {
			t.Error(err)
		}
	}
}

// TestRateCrowd has a hundred callers come and go in real goroutines, and counts.
func TestRateCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, svc := rated(100, time.Second, 10)
		start := time.Now()
		ends := make(chan time.Duration, 1000)
		for i := range 300 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%3+1)*time.Second)
				defer cancel()
				if _, err := belfry.Do(ctx, svc, ""); err != nil {
					wantRate(t, err, context.DeadlineExceeded)
				}
				ends <- time.Since(start)
			}()
		}
		var all []time.Duration
		for range 300 {
			all = append(all, <-ends)
		}
		slices.Sort(all)
		s := l.Stats()
		if s.Admitted+s.Cancelled != 300 || s.Waiting != 0 || all[299] > 3*time.Second {
			t.Errorf("%+v, the last after %v", s, all[299])
		}
	})
}
