package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/breaker"
)

func TestOpen(t *testing.T) {
	bubble(t, "it refuses, and says why and for how long", func(t *testing.T) {
		svc, in := opened(t, exact)
		after(400 * time.Millisecond)
		r := refused(t, svc, t.Context())
		if got, want := r.Error(), "breaker: open, retry after 599.999999ms: ill"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if !errors.Is(&r, belfry.ErrNotReady) || errors.Is(&r, errIll) {
			t.Errorf("it matches the wrong thing: %v", &r)
		}
		if in.count() != 2 {
			t.Errorf("%d calls, want the two that failed", in.count())
		}
	})
	bubble(t, "without an error to show it says less", func(t *testing.T) {
		svc, _ := newService(exact, belfry.Semantics[int, int]{Classify: func(int, error) belfry.Outcome {
			return belfry.Outcome{Kind: belfry.Failure, RetryAfter: time.Minute}
		}})
		served(t, svc)
		served(t, svc)
		r := refused(t, svc, t.Context())
		if r.Err != belfry.ErrNotReady || r.RetryAfter != time.Minute {
			t.Errorf("got %+v", r)
		}
	})
	bubble(t, "also under NoWait, and where somebody would wait", func(t *testing.T) {
		svc, _ := opened(t, exact)
		for range 3 {
			if r := refused(t, svc, belfry.NoWait(t.Context())); r.RetryAfter != time.Second {
				t.Errorf("got %+v", r)
			}
		}
		if s := svc.Stats(); s.Refused != 3 {
			t.Errorf("got %+v", s)
		}
	})
	bubble(t, "for what counts as a failure", func(t *testing.T) {
		for name, c := range map[string]struct {
			does func(context.Context, int) (int, error)
			want breaker.State
		}{
			"an error":           {ill, breaker.Open},
			"a timeout":          {func(context.Context, int) (int, error) { return 0, context.DeadlineExceeded }, breaker.Open},
			"a panic":            {func(context.Context, int) (int, error) { panic("oh") }, breaker.Open},
			"Goexit":             {func(context.Context, int) (int, error) { runtime.Goexit(); return 0, nil }, breaker.Open},
			"a caller that left": {func(context.Context, int) (int, error) { return 0, context.Canceled }, breaker.Closed},
			"a success":          {nil, breaker.Closed},
		} {
			svc, in := newService(exact)
			in.becomes(c.does)
			for range 3 {
				quietly(func() { _, _ = belfry.Do(t.Context(), svc, 1) })
			}
			if got := svc.Stats().State; got != c.want {
				t.Errorf("%s: it is %v, want %v", name, got, c.want)
			}
		}
	})
	bubble(t, "what the inner service refuses is no failure, and comes through", func(t *testing.T) {
		backend, in := belfrytest.NewBackend[int, int](t)
		svc := breaker.New(in, exact)
		for range 3 {
			backend.FailAcquire(errIll)
			if _, err := svc.Acquire(t.Context()); err != errIll {
				t.Errorf("got %v", err)
			}
			if _, err := belfry.TryDo(t.Context(), svc, 1); !errors.Is(err, belfry.ErrNotReady) {
				t.Errorf("got %v", err)
			}
		}
		wantState(t, svc, breaker.Closed)
	})
	bubble(t, "a caller that has waited is refused if it opened meanwhile", func(t *testing.T) {
		backend, in := belfrytest.NewBackend[int, int](t)
		svc := breaker.New(in, exact)
		got := make(chan error, 1)
		go func() {
			_, err := svc.Acquire(t.Context())
			got <- err
		}()
		synctest.Wait()
		svc.Trip(time.Minute)
		backend.Allow(1)
		if err := <-got; belfry.RetryAfter(err) != time.Minute {
			t.Errorf("got %v", err)
		}
		if backend.Held() != 0 || backend.Free() != 1 {
			t.Error("it has kept the inner permit")
		}
	})
	bubble(t, "permits from before may be called, or released, and change nothing", func(t *testing.T) {
		backend, in := belfrytest.NewBackend[int, int](t)
		svc := breaker.New(in, exact)
		backend.Allow(3)
		permits := []belfry.Permit{mustAcquire(t, svc), mustAcquire(t, svc), mustAcquire(t, svc)}
		svc.Trip(time.Minute)
		go func() { backend.Expect(1).Answer(5) }()
		if res, err := svc.Call(t.Context(), permits[0], 1); res != 5 || err != nil {
			t.Errorf("got %d, %v", res, err)
		}
		go func() { backend.Expect(2).Fail(errIll) }()
		if _, err := svc.Call(t.Context(), permits[1], 2); err != errIll {
			t.Errorf("got %v", err)
		}
		svc.Release(permits[2])
		wantState(t, svc, breaker.Open)
		if s := svc.Stats(); s.Failures != 0 {
			t.Errorf("got %+v", s)
		}
	})
	bubble(t, "a call that began before it opened does not count after it has closed", func(t *testing.T) {
		svc, in := newService(with(func(c *breaker.Config) { c.Consecutive = 1 }))
		fails := make(chan struct{})
		in.becomes(func(context.Context, int) (int, error) { <-fails; return 0, errIll })
		go func() { _, _ = belfry.Do(t.Context(), svc, 1) }()
		synctest.Wait()
		svc.Trip(0)
		after(time.Second)
		in.becomes(nil)
		served(t, svc)
		wantState(t, svc, breaker.Closed)
		close(fails)
		synctest.Wait()
		wantState(t, svc, breaker.Closed)
	})
}

// quietly runs f in a goroutine of its own, which may panic.
func quietly(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = recover() }()
		f()
	}()
	<-ended
}

func TestHalfOpen(t *testing.T) {
	bubble(t, "one call is let through, and closes it", func(t *testing.T) {
		svc, in := opened(t, exact)
		after(time.Second)
		answer := make(chan struct{})
		in.becomes(func(_ context.Context, n int) (int, error) { <-answer; return n, nil })
		got := make(chan error, 1)
		go func() {
			_, err := belfry.Do(t.Context(), svc, 1)
			got <- err
		}()
		synctest.Wait()
		wantState(t, svc, breaker.HalfOpen)
		for range 3 {
			if r := refused(t, svc, t.Context()); r.RetryAfter != 0 || r.Reason != "half-open" {
				t.Errorf("got %+v", r)
			}
		}
		in.becomes(nil)
		close(answer)
		if err := <-got; err != nil {
			t.Error(err)
		}
		wantState(t, svc, breaker.Closed)
		served(t, svc)
		if in.count() != 4 {
			t.Errorf("%d calls, want two failures, a probe and one more", in.count())
		}
	})
	bubble(t, "each that fails doubles the pause", func(t *testing.T) {
		svc, in := opened(t, exact)
		in.becomes(ill)
		for i := range 4 {
			pause := time.Second << i
			after(pause - 2*time.Nanosecond)
			refused(t, svc, t.Context())
			after(time.Nanosecond)
			if _, err := belfry.Do(t.Context(), svc, 1); err != errIll {
				t.Fatalf("probe %d got %v", i, err)
			}
			wantState(t, svc, breaker.Open)
		}
	})
	bubble(t, "it is not half-open before somebody comes", func(t *testing.T) {
		svc, _ := opened(t, exact)
		after(time.Hour)
		wantState(t, svc, breaker.Open)
	})
	for name, lose := range map[string]func(t *testing.T, svc *service, in *inner){
		"released": func(t *testing.T, svc *service, _ *inner) { svc.Release(mustAcquire(t, svc)) },
		"ignored": func(t *testing.T, svc *service, in *inner) {
			in.becomes(func(context.Context, int) (int, error) { return 0, context.Canceled })
			_, _ = belfry.Do(t.Context(), svc, 1)
		},
		"cancelled": func(t *testing.T, svc *service, in *inner) {
			in.becomes(func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			_, _ = belfry.Do(ctx, svc, 1)
		},
		"never used": func(t *testing.T, svc *service, _ *inner) {
			mustAcquire(t, svc)
			refused(t, svc, t.Context())
			after(time.Minute)
		},
		"never answered": func(t *testing.T, svc *service, in *inner) {
			in.becomes(func(context.Context, int) (int, error) { time.Sleep(time.Hour); return 0, errIll })
			go func() { _, _ = belfry.Do(t.Context(), svc, 1) }()
			after(time.Minute)
			t.Cleanup(func() { // its failure comes long after the breaker has closed, and says nothing
				wantState(t, svc, breaker.Closed)
			})
			t.Cleanup(func() { after(time.Hour) })
		},
	} {
		bubble(t, "a probe that is "+name+" makes way for another", func(t *testing.T) {
			svc, in := opened(t, exact)
			after(time.Second)
			for range 3 {
				lose(t, svc, in)
			}
			wantState(t, svc, breaker.HalfOpen)
			in.becomes(nil)
			served(t, svc)
			wantState(t, svc, breaker.Closed)
		})
	}
	for name, does := range map[string]func(context.Context, int) (int, error){
		"panics": func(context.Context, int) (int, error) { panic("oh") },
		"exits":  func(context.Context, int) (int, error) { runtime.Goexit(); return 0, nil },
	} {
		bubble(t, "a probe that "+name+" has failed", func(t *testing.T) {
			svc, in := opened(t, exact)
			after(time.Second)
			in.becomes(does)
			quietly(func() { _, _ = belfry.Do(t.Context(), svc, 1) })
			wantState(t, svc, breaker.Open)
			if r := refused(t, svc, t.Context()); r.RetryAfter != 2*time.Second || r.Err.Error() != "the call panicked, or ended its goroutine" {
				t.Errorf("got %+v", r)
			}
			after(2 * time.Second)
			in.becomes(nil)
			served(t, svc)
			wantState(t, svc, breaker.Closed)
		})
	}
	bubble(t, "one that finds no room, or panics in Acquire, makes way for another", func(t *testing.T) {
		fine := func(context.Context) (belfry.Permit, error) { return belfry.Permit{}, nil }
		in := &acquiring{Service: belfry.Of(echo), acquire: fine}
		svc := breaker.New[int, int](in, exact)
		svc.Trip(0)
		after(time.Second)
		for _, acquire := range []func(context.Context) (belfry.Permit, error){
			func(context.Context) (belfry.Permit, error) { return belfry.Permit{}, errIll },
			func(context.Context) (belfry.Permit, error) { panic("oh") },
			func(context.Context) (belfry.Permit, error) { runtime.Goexit(); return belfry.Permit{}, nil },
		} {
			in.acquire = acquire
			quietly(func() { _, _ = svc.Acquire(t.Context()) })
			wantState(t, svc, breaker.HalfOpen)
			in.acquire = fine
			svc.Release(mustAcquire(t, svc))
		}
		served(t, svc)
		wantState(t, svc, breaker.Closed)
	})
	bubble(t, "one that waited for room until it was given up is not let through late", func(t *testing.T) {
		backend, in := belfrytest.NewBackend[int, int](t)
		svc := breaker.New(in, exact)
		svc.Trip(0)
		after(time.Second)
		got := make(chan error, 1)
		go func() {
			_, err := svc.Acquire(t.Context())
			got <- err
		}()
		after(2 * time.Minute)
		next := make(chan belfry.Permit, 1)
		go func() {
			permit, _ := svc.Acquire(t.Context())
			next <- permit
		}()
		synctest.Wait()
		backend.Allow(2)
		if err := <-got; !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("the first got %v, want a refusal", err)
		}
		svc.Release(<-next)
		if backend.Free() != 2 {
			t.Errorf("%d are free, want both", backend.Free())
		}
	})
	bubble(t, "a breaker over a breaker knows its own probes", func(t *testing.T) {
		in, i := newService(exact)
		out := breaker.New[int, int](in, exact)
		in.Trip(0)
		after(time.Second)
		permit := mustAcquire(t, out) // the inner one's probe, and no probe of the outer one
		wantState(t, in, breaker.HalfOpen)
		out.Release(permit)
		permit = mustAcquire(t, out)
		i.becomes(ill)
		_, _ = out.Call(t.Context(), permit, 1)
		wantState(t, in, breaker.Open)
		if s := out.Stats(); s.State != breaker.Closed || s.Consecutive != 1 {
			t.Errorf("the outer one is %+v", s)
		}
		i.becomes(nil)
		out.Trip(0)
		after(2 * time.Second)
		served(t, out)
		wantState(t, in, breaker.Closed)
		wantState(t, out, breaker.Closed)
	})
}

// An acquiring service acquires as it is told.
type acquiring struct {
	belfry.Service[int, int]
	acquire func(context.Context) (belfry.Permit, error)
}

func (a *acquiring) Acquire(ctx context.Context) (belfry.Permit, error) { return a.acquire(ctx) }

func TestByHand(t *testing.T) {
	bubble(t, "Trip opens it, and Reset closes it", func(t *testing.T) {
		svc, in := newService(exact)
		svc.Trip(time.Hour)
		after(59 * time.Minute)
		if r := refused(t, svc, t.Context()); r.Err.Error() != "opened by hand" {
			t.Errorf("got %+v", r)
		}
		svc.Reset()
		served(t, svc)
		if s := svc.Stats(); s.State != breaker.Closed || s.LastError != nil || in.count() != 1 {
			t.Errorf("got %+v, and %d calls", s, in.count())
		}
	})
	bubble(t, "a probe that is out when it is reset is a call like any other", func(t *testing.T) {
		svc, in := opened(t, exact)
		after(time.Second)
		permit := mustAcquire(t, svc)
		svc.Reset()
		in.becomes(ill)
		if _, err := svc.Call(t.Context(), permit, 1); err != errIll {
			t.Error(err)
		}
		wantState(t, svc, breaker.Closed)
	})
}

type closing struct {
	belfry.Service[int, int]
	err error
}

func (c closing) Close() error { return c.err }

func TestClose(t *testing.T) {
	if err := breaker.New[int, int](closing{belfry.Of(echo), errIll}, breaker.Config{}).Close(); err != errIll {
		t.Errorf("got %v, want what the inner Close returned", err)
	}
	if err := breaker.New(belfry.Of(echo), breaker.Config{}).Close(); err != nil {
		t.Error(err)
	}
}

func TestStats(t *testing.T) {
	bubble(t, "of all states", func(t *testing.T) {
		began := time.Now()
		svc, in := newService(breaker.Config{Consecutive: 3, Ratio: 1, Rand: chance(0)})
		want := breaker.Stats{Since: began}
		check := func() {
			t.Helper()
			if got := svc.Stats(); got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
		check()
		served(t, svc)
		in.becomes(ill)
		_, _ = belfry.Do(t.Context(), svc, 1)
		want.Failures, want.Consecutive, want.RecentCalls, want.RecentFailures, want.LastError = 1, 1, 2, 1, errIll
		check()
		time.Sleep(10 * time.Second)
		want.RecentCalls, want.RecentFailures = 0, 0
		check()
		_, _ = belfry.Do(t.Context(), svc, 1)
		_, _ = belfry.Do(t.Context(), svc, 1)
		refused(t, svc, t.Context())
		want = breaker.Stats{
			State: breaker.Open, Since: began.Add(10 * time.Second), NextProbe: began.Add(11 * time.Second),
			LastError: errIll, Failures: 3, Opened: 1, Refused: 1,
		}
		check()
		time.Sleep(2 * time.Second)
		check()
		permit := mustAcquire(t, svc)
		want.State, want.Since, want.NextProbe, want.Probes = breaker.HalfOpen, began.Add(12*time.Second), began.Add(72*time.Second), 1
		check()
		svc.Release(permit)
		want.NextProbe = want.Since
		check()
		in.becomes(nil)
		served(t, svc)
		want.State, want.NextProbe, want.Probes = breaker.Closed, time.Time{}, 2
		check()
	})
}

func TestOnChange(t *testing.T) {
	bubble(t, "it is told of each change, in order, and may use the breaker", func(t *testing.T) {
		began := time.Now()
		var svc *service
		var told []breaker.Change
		var in *inner
		svc, in = newService(with(func(c *breaker.Config) {
			c.OnChange = func(change breaker.Change) {
				told = append(told, change)
				if got := svc.Stats().State; got != change.To {
					t.Errorf("told of %v, and it is %v", change.To, got)
				}
				if _, err := belfry.Do(t.Context(), svc, 1); (err == nil) != (change.To == breaker.Closed) {
					t.Errorf("told of %v, and a call gets %v", change.To, err)
				}
			}
		}))
		in.becomes(ill)
		_, _ = belfry.Do(t.Context(), svc, 1)
		_, _ = belfry.Do(t.Context(), svc, 1)
		in.becomes(nil)
		synctest.Wait()
		time.Sleep(time.Second)
		permit := mustAcquire(t, svc)
		synctest.Wait()
		_, _ = svc.Call(t.Context(), permit, 1)
		synctest.Wait()
		want := []breaker.Change{
			{From: breaker.Closed, To: breaker.Open, At: began, NextProbe: began.Add(time.Second), Err: errIll},
			{From: breaker.Open, To: breaker.HalfOpen, At: began.Add(time.Second), Err: errIll},
			{From: breaker.HalfOpen, To: breaker.Closed, At: began.Add(time.Second), Err: errIll},
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %+v, want %+v", told, want)
		}
	})
	bubble(t, "changes that it makes itself are told of after it has returned", func(t *testing.T) {
		var svc *service
		var told []string
		busy := false
		svc, _ = newService(with(func(c *breaker.Config) {
			c.OnChange = func(change breaker.Change) {
				if busy {
					t.Error("two at a time")
				}
				busy = true
				told = append(told, fmt.Sprint(change.From, "→", change.To))
				if len(told) == 1 {
					svc.Reset()
					svc.Trip(0)
					svc.Reset()
				}
				time.Sleep(time.Second)
				busy = false
			}
		}))
		svc.Trip(0)
		after(time.Minute)
		if want := []string{"closed→open", "open→closed", "closed→open", "open→closed"}; !slices.Equal(told, want) {
			t.Errorf("told %v, want %v", told, want)
		}
	})
	bubble(t, "one that waits holds up nobody but the next of them", func(t *testing.T) {
		var told atomic.Int32
		svc, _ := newService(with(func(c *breaker.Config) {
			c.OnChange = func(breaker.Change) { told.Add(1); time.Sleep(time.Minute) }
		}))
		for range 3 {
			svc.Trip(0)
			svc.Reset()
		}
		served(t, svc)
		after(time.Second)
		if told.Load() != 1 {
			t.Errorf("told %d times, want once yet", told.Load())
		}
		after(6 * time.Minute)
		if told.Load() != 6 {
			t.Errorf("told %d times, want six times", told.Load())
		}
	})
	bubble(t, "its panic is lost, and so is its Goexit, and no change is", func(t *testing.T) {
		for _, end := range []func(){func() { panic("no") }, runtime.Goexit} {
			var told atomic.Int32
			svc, _ := newService(with(func(c *breaker.Config) { c.OnChange = func(breaker.Change) { told.Add(1); end() } }))
			for range 3 {
				svc.Trip(0)
				svc.Reset()
			}
			synctest.Wait()
			served(t, svc)
			svc.Trip(0)
			synctest.Wait()
			if told.Load() != 7 {
				t.Errorf("told %d times, want seven times", told.Load())
			}
		}
	})
}
