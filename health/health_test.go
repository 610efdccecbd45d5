package health_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/health"
)

// bubble runs a case in a bubble.
func bubble(t *testing.T, name string, run func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
}

// after lets time pass, and a hair more, so that what was due then is done.
func after(d time.Duration) {
	time.Sleep(d + time.Nanosecond)
	synctest.Wait()
}

var errIll = errors.New("ill")

// A patient is what probes find. Its zero value is well.
type patient struct {
	mu    sync.Mutex
	find  func(ctx context.Context) error
	begun time.Time
	asked []time.Duration // when probes began
}

func newPatient() *patient { return &patient{begun: time.Now()} }

func (p *patient) probe(ctx context.Context) error {
	p.mu.Lock()
	p.asked = append(p.asked, time.Since(p.begun))
	find := p.find
	p.mu.Unlock()
	if find == nil {
		return nil
	}
	return find(ctx)
}

func (p *patient) becomes(find func(ctx context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.find = find
}

func (p *patient) probes() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func well(context.Context) error { return nil }
func ill(context.Context) error  { return errIll }

// deaf does not notice the end of its context.
func deaf(until <-chan struct{}) func(context.Context) error {
	return func(context.Context) error { <-until; return nil }
}

// chance is a source of random numbers that always returns the same fraction.
type chance float64

func (c chance) Uint64() uint64 { return uint64(float64(c) * (1 << 53)) }

const almost = 1 - 1e-12

// exact is a Config without chance: the first probe is at 0, then there is one every 2 s or 10 s.
var exact = health.Config{Rand: chance(0)}

type service = health.Service[int, int]

// probed returns a service over nothing that is probed by p until the test ends.
func probed(t *testing.T, p *patient, cfg health.Config) *service {
	t.Helper()
	svc := health.New(belfry.Of(echo), p.probe, cfg)
	t.Cleanup(func() { svc.Close() })
	return svc
}

func echo(_ context.Context, req int) (int, error) { return req, nil }

// refused returns the rejection of a call, and fails the test if it is let through.
func refused(t *testing.T, svc belfry.Service[int, int]) belfry.Rejection {
	t.Helper()
	_, err := belfry.Do(t.Context(), svc, 1)
	r, ok := errors.AsType[*belfry.Rejection](err)
	if !ok || !errors.Is(err, belfry.ErrNotReady) || r.Layer != "health" {
		t.Fatalf("got %v, want a refusal", err)
	}
	return *r
}

func served(t *testing.T, svc belfry.Service[int, int]) {
	t.Helper()
	if res, err := belfry.Do(t.Context(), svc, 1); res != 1 || err != nil {
		t.Fatalf("got %d, %v, want to be let through", res, err)
	}
}

func TestHealth(t *testing.T) {
	bubble(t, "an endpoint becomes unhealthy after three failures and healthy after two successes", func(t *testing.T) {
		p := newPatient()
		p.becomes(ill)
		svc := probed(t, p, exact)
		served(t, svc)
		after(0) // at 0, 2, 4
		served(t, svc)
		after(2 * time.Second)
		served(t, svc)
		after(2 * time.Second)
		refused(t, svc)
		p.becomes(well)
		after(2 * time.Second)
		refused(t, svc)
		after(2 * time.Second)
		served(t, svc)
	})
	bubble(t, "a single failure changes nothing", func(t *testing.T) {
		p := newPatient()
		svc := probed(t, p, exact)
		after(time.Minute)
		p.becomes(ill)
		after(6 * time.Second)
		p.becomes(well)
		if s := svc.Stats(); s.Failures != 1 || !s.Healthy || s.LastError != errIll {
			t.Fatalf("got %+v", s)
		}
		served(t, svc)
		after(2 * time.Second)
		if s := svc.Stats(); s.LastError != nil {
			t.Errorf("it is well again, and the last error is %v", s.LastError)
		}
	})
	bubble(t, "one that starts unhealthy is let through after a success", func(t *testing.T) {
		p := newPatient()
		p.becomes(func(context.Context) error {
			time.Sleep(time.Millisecond) // so that the first probe is not done before it is looked at
			return errIll
		})
		cfg := exact
		cfg.StartUnhealthy = true
		svc := probed(t, p, cfg)
		if r := refused(t, svc); r.Err.Error() != "not probed yet" {
			t.Errorf("got %v", r.Err)
		}
		after(5 * time.Second)
		refused(t, svc)
		p.becomes(well)
		after(2 * time.Second)
		served(t, svc)
	})
	bubble(t, "a refusal says why and until when", func(t *testing.T) {
		p := newPatient()
		p.becomes(func(ctx context.Context) error {
			time.Sleep(500 * time.Millisecond)
			return errIll
		})
		svc := probed(t, p, exact)
		after(5500 * time.Millisecond) // the third began at 5 s
		r := refused(t, svc)
		if r.RetryAfter.Round(time.Millisecond) != 2*time.Second || r.Reason != "unhealthy" {
			t.Errorf("got %+v", r)
		}
		after(500 * time.Millisecond)
		r = refused(t, svc)
		if got, want := r.Error(), "health: unhealthy, retry after 1.499999998s: ill"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		after(1700 * time.Millisecond) // a probe is at it
		if r := refused(t, svc); r.RetryAfter != 0 {
			t.Errorf("retry after %v, want 0 for unknown", r.RetryAfter)
		}
	})
	bubble(t, "under NoWait it is the same", func(t *testing.T) {
		p := newPatient()
		p.becomes(ill)
		svc := probed(t, p, exact)
		if _, err := belfry.TryDo(t.Context(), svc, 1); err != nil {
			t.Error(err)
		}
		after(4 * time.Second)
		if _, err := belfry.TryDo(t.Context(), svc, 1); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
		if s := svc.Stats(); s.Refused != 1 {
			t.Errorf("got %+v", s)
		}
	})
	bubble(t, "a caller that has waited is refused if the endpoint became unhealthy meanwhile", func(t *testing.T) {
		backend, inner := belfrytest.NewBackend[int, int](t)
		p := newPatient()
		p.becomes(ill)
		svc := health.New(inner, p.probe, exact)
		defer svc.Close()
		got := make(chan error, 1)
		go func() {
			_, err := svc.Acquire(t.Context())
			got <- err
		}()
		after(4 * time.Second)
		if backend.Waiting() != 1 {
			t.Fatal("it does not wait")
		}
		backend.Allow(1)
		if err := <-got; !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
		if backend.Held() != 0 || backend.Free() != 1 {
			t.Error("it has kept the inner permit")
		}
	})
	bubble(t, "calls in flight and permits out are left alone", func(t *testing.T) {
		backend, inner := belfrytest.NewBackend[int, int](t)
		p := newPatient()
		svc := health.New(inner, p.probe, exact)
		defer svc.Close()
		backend.Allow(3)
		got := make(chan error, 1)
		go func() {
			_, err := belfry.Do(t.Context(), svc, 7)
			got <- err
		}()
		req := backend.Expect(7)
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.becomes(ill)
		after(time.Minute)
		if req.Context().Err() != nil {
			t.Error("the call was cancelled")
		}
		req.Answer(1)
		if err := <-got; err != nil {
			t.Error(err)
		}
		svc.Release(other)
		go func() { backend.Expect(8).Answer(2) }()
		if res, err := svc.Call(t.Context(), permit, 8); res != 2 || err != nil {
			t.Errorf("got %d, %v", res, err)
		}
		if backend.Free() != 1 {
			t.Errorf("%d are free, want the one that was released", backend.Free())
		}
	})
	bubble(t, "calls have no effect on probes", func(t *testing.T) {
		p := newPatient()
		svc := health.New(belfry.Of(func(context.Context, int) (int, error) { return 0, errIll }), p.probe, exact)
		defer svc.Close()
		for range 100 {
			_, _ = belfry.Do(t.Context(), svc, 1)
		}
		after(time.Minute)
		if s := svc.Stats(); !s.Healthy || s.Failures != 0 || s.Refused != 0 {
			t.Errorf("got %+v", s)
		}
	})
	bubble(t, "what an inner service says passes", func(t *testing.T) {
		backend, inner := belfrytest.NewBackend[int, int](t)
		svc := health.New(inner, well, exact)
		defer svc.Close()
		backend.FailAcquire(errIll)
		if _, err := svc.Acquire(t.Context()); err != errIll {
			t.Errorf("got %v", err)
		}
	})
	bubble(t, "what the Stats say", func(t *testing.T) {
		p := newPatient()
		p.becomes(ill)
		begun := time.Now()
		svc := probed(t, p, exact)
		if s := svc.Stats(); !s.Healthy || s.Since != begun || s.Refused != 0 {
			t.Errorf("got %+v", s)
		}
		after(5 * time.Second)
		refused(t, svc)
		want := health.Stats{Healthy: false, Since: begun.Add(4 * time.Second), LastError: errIll, Probes: 3, Failures: 3, Refused: 1}
		if s := svc.Stats(); s != want {
			t.Errorf("got %+v, want %+v", s, want)
		}
	})
}

func TestPauses(t *testing.T) {
	seconds := func(at ...float64) (d []time.Duration) {
		for _, s := range at {
			d = append(d, time.Duration(s*float64(time.Second)))
		}
		return d
	}
	withRand := func(cfg health.Config, c chance) health.Config { cfg.Rand = c; return cfg }
	for _, c := range []struct {
		name string
		cfg  health.Config
		find func(context.Context) error
		want []time.Duration
	}{
		{"well, at their longest", exact, well, seconds(0, 2, 4, 6, 16, 26)},
		{"well, in the middle", withRand(exact, 0.5), well, seconds(1, 2.8, 4.6, 6.4, 15.4, 24.4)},
		{"well, at their shortest", withRand(exact, almost), well, seconds(2, 3.6, 5.2, 6.8, 14.8, 22.8)},
		{"ill", exact, ill, seconds(0, 2, 4, 6, 8, 10, 20, 30)},
		{
			"of one's own",
			health.Config{Interval: 5 * time.Second, FastInterval: time.Second, Jitter: 1, Healthy: 1, Rand: chance(0.5)},
			well,
			seconds(0.5, 1, 3.5, 6),
		},
		{"a fifth", health.Config{Interval: time.Second, Healthy: 1, Rand: chance(0)}, well, seconds(0, 0.2, 1.2, 2.2)},
		{"from the end of a probe", exact, func(context.Context) error { time.Sleep(time.Second); return nil }, seconds(0, 3, 6, 9, 20)},
	} {
		bubble(t, c.name, func(t *testing.T) {
			p := newPatient()
			p.becomes(c.find)
			probed(t, p, c.cfg)
			after(c.want[len(c.want)-1] + time.Second/10)
			got := p.probes()
			for i := range got {
				got[i] = got[i].Round(time.Millisecond)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("probes were made at %v, want %v", got, c.want)
			}
		})
	}
	bubble(t, "first probes are spread", func(t *testing.T) {
		p := newPatient()
		for range 1000 {
			probed(t, p, health.Config{})
		}
		for tenth := range 10 {
			after(200 * time.Millisecond)
			if n := len(p.probes()) - 100*tenth; tenth < 8 && (n < -100 || n > 300) {
				t.Errorf("%d probes after %d tenths of the fast interval", len(p.probes()), tenth+1)
			}
		}
		if n := len(p.probes()); n < 1000 {
			t.Errorf("%d of 1000 were probed within the fast interval", n)
		}
	})
}

func TestProbe(t *testing.T) {
	bubble(t, "one that takes too long has its context ended, and says so itself", func(t *testing.T) {
		p := newPatient()
		p.becomes(func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("asking: %w", ctx.Err())
		})
		svc := probed(t, p, exact)
		after(2 * time.Second)
		if err := svc.Stats().LastError; err == nil || err.Error() != "asking: context deadline exceeded" {
			t.Errorf("got %v", err)
		}
	})
	bubble(t, "a success after its time is a failure", func(t *testing.T) {
		p := newPatient()
		p.becomes(func(context.Context) error { time.Sleep(2050 * time.Millisecond); return nil })
		svc := probed(t, p, exact)
		after(2050 * time.Millisecond)
		if s := svc.Stats(); s.Failures != 1 || !errors.Is(s.LastError, context.DeadlineExceeded) {
			t.Errorf("got %+v", s)
		}
	})
	bubble(t, "one that goes on all the same fails, and no other is started", func(t *testing.T) {
		p := newPatient()
		until := make(chan struct{})
		p.becomes(deaf(until))
		svc := probed(t, p, exact)
		after(2100 * time.Millisecond)
		if s := svc.Stats(); s.Failures != 1 || !errors.Is(s.LastError, context.DeadlineExceeded) {
			t.Errorf("got %+v", s)
		}
		after(4 * time.Second)
		refused(t, svc)
		if s := svc.Stats(); s.Failures != 3 || !strings.Contains(s.LastError.Error(), "has not returned") || len(p.probes()) != 1 {
			t.Errorf("got %+v, and %d probes", s, len(p.probes()))
		}
		p.becomes(well)
		close(until)
		after(4 * time.Second)
		served(t, svc)
	})
	bubble(t, "one that panics fails, and its stack is kept", func(t *testing.T) {
		for _, value := range []any{errIll, "oh"} {
			p := newPatient()
			p.becomes(func(context.Context) error { panic(value) })
			svc := probed(t, p, exact)
			after(4 * time.Second)
			if got, want := refused(t, svc).Err.Error(), fmt.Sprint("the probe panicked: ", value); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			err := svc.Stats().LastError
			e, ok := errors.AsType[*health.PanicError](err)
			if !ok || !strings.Contains(string(e.Stack), "TestProbe") || errors.Is(err, errIll) != (value == any(errIll)) {
				t.Errorf("got %v", err)
			}
		}
	})
	bubble(t, "one whose error panics, or that ends its goroutine, fails", func(t *testing.T) {
		for want, find := range map[string]func(context.Context) error{
			"PANIC":                  func(context.Context) error { return unspeakable{} },
			"the probe panicked: no": func(context.Context) error { return unrecognisable{} },
			"Goexit":                 func(context.Context) error { runtime.Goexit(); return nil },
		} {
			p := newPatient()
			p.becomes(find)
			svc := probed(t, p, exact)
			after(4 * time.Second)
			if r := refused(t, svc); !strings.Contains(r.Err.Error(), want) {
				t.Errorf("got %v, want %q", r.Err, want)
			}
		}
	})
	bubble(t, "its error is told, and is not that of the call", func(t *testing.T) {
		for _, err := range []error{context.DeadlineExceeded, context.Canceled, belfry.ErrClosed, errIll} {
			p := newPatient()
			p.becomes(func(context.Context) error { return err })
			svc := probed(t, p, exact)
			after(4 * time.Second)
			if r := refused(t, svc); errors.Is(&r, err) || r.Err.Error() != err.Error() {
				t.Errorf("got %v", r.Err)
			}
			if s := svc.Stats(); s.LastError != err {
				t.Errorf("got %+v", s)
			}
		}
	})
	bubble(t, "one for which there is no room is no result", func(t *testing.T) {
		p := newPatient()
		p.becomes(ill)
		svc := probed(t, p, exact)
		after(3 * time.Second) // two failures
		p.becomes(func(context.Context) error { return &belfry.Rejection{Layer: "limit", Err: belfry.ErrNotReady} })
		after(time.Minute)
		if s := svc.Stats(); s.Probes != 2 || !s.Healthy || s.LastError != errIll {
			t.Errorf("got %+v", s)
		}
		if n := len(p.probes()); n < 20 {
			t.Errorf("%d probes in a minute, want one every 2 s", n)
		}
		p.becomes(ill)
		after(3 * time.Second) // a probe every 2 s, and where in between is not known
		refused(t, svc)
	})
}

type unspeakable struct{}

func (unspeakable) Error() string { panic("no") }

type unrecognisable struct{}

func (unrecognisable) Error() string { return "" }
func (unrecognisable) Is(error) bool { panic("no") }

func TestOnChange(t *testing.T) {
	bubble(t, "it is told of each change, and may use the service", func(t *testing.T) {
		p := newPatient()
		begun := time.Now()
		var svc *service
		var told []health.Stats
		cfg := exact
		cfg.OnChange = func(s health.Stats) {
			told = append(told, s)
			if now := svc.Stats(); now.Healthy != s.Healthy {
				t.Errorf("told %v, and it is %v", s.Healthy, now.Healthy)
			}
			if _, err := belfry.Do(t.Context(), svc, 1); (err == nil) != s.Healthy {
				t.Errorf("told %v, and a call gets %v", s.Healthy, err)
			}
		}
		p.becomes(ill)
		svc = probed(t, p, cfg)
		p.becomes(ill) // still, and what is seen of this shows svc to the hook
		after(5 * time.Second)
		p.becomes(well)
		after(5 * time.Second)
		want := []health.Stats{
			{Healthy: false, Since: begun.Add(4 * time.Second), LastError: errIll, Probes: 3, Failures: 3},
			{Healthy: true, Since: begun.Add(8 * time.Second), Probes: 5, Failures: 3},
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %+v, want %+v", told, want)
		}
	})
	bubble(t, "the next probe waits for it, and it is called once at a time", func(t *testing.T) {
		p := newPatient()
		p.becomes(ill)
		cfg := exact
		cfg.OnChange = func(health.Stats) { time.Sleep(time.Minute) }
		svc := probed(t, p, cfg)
		after(62 * time.Second)
		if n := len(p.probes()); n != 3 {
			t.Errorf("%d probes before it has returned, want 3", n)
		}
		refused(t, svc)
		after(4 * time.Second)
		if n := len(p.probes()); n != 4 {
			t.Errorf("%d probes after it has returned, want 4", n)
		}
	})
	bubble(t, "its panic is lost, and so is its Goexit", func(t *testing.T) {
		for _, end := range []func(){func() { panic("no") }, runtime.Goexit} {
			p := newPatient()
			p.becomes(ill)
			cfg := exact
			cfg.OnChange = func(health.Stats) { end() }
			svc := probed(t, p, cfg)
			after(5 * time.Second)
			p.becomes(well)
			after(5 * time.Second)
			served(t, svc)
		}
	})
	bubble(t, "it may close the service", func(t *testing.T) {
		p := newPatient()
		closed := false
		cfg := exact
		var svc *service
		cfg.OnChange = func(health.Stats) {
			svc.Close()
			closed = true
		}
		p.becomes(ill)
		svc = probed(t, p, cfg)
		p.becomes(ill) // still, and what is seen of this shows svc to the hook
		after(4 * time.Second)
		if !closed {
			t.Fatal("Close waits for the hook that calls it")
		}
		after(time.Minute)
		if n := len(p.probes()); n != 3 {
			t.Errorf("%d probes, want 3", n)
		}
	})
}

// A closing service counts how often it is closed.
type closing struct {
	belfry.Service[int, int]
	n   int
	err error
}

func (c *closing) Close() error { c.n++; return c.err }

func TestClose(t *testing.T) {
	bubble(t, "it ends the probes, and refuses", func(t *testing.T) {
		p := newPatient()
		svc := health.New(belfry.Of(echo), p.probe, exact)
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		after(5 * time.Second)
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
		after(time.Hour)
		if n := len(p.probes()); n != 3 {
			t.Errorf("%d probes, want 3", n)
		}
		_, err = svc.Acquire(t.Context())
		if r, ok := errors.AsType[*belfry.Rejection](err); !ok || r.Layer != "health" || !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if res, err := svc.Call(t.Context(), permit, 3); res != 3 || err != nil {
			t.Errorf("a call with a permit from before: got %d, %v", res, err)
		}
	})
	bubble(t, "before the first probe", func(t *testing.T) {
		p := newPatient()
		svc := health.New(belfry.Of(echo), p.probe, health.Config{Rand: chance(0.5)})
		svc.Close()
		after(time.Minute)
		if n := len(p.probes()); n != 0 {
			t.Errorf("%d probes", n)
		}
	})
	bubble(t, "at the moment of a probe, which does not begin after it has returned", func(t *testing.T) {
		for range 1000 {
			var closed atomic.Bool
			svc := health.New(belfry.Of(echo), func(context.Context) error {
				if closed.Load() {
					t.Error("it has begun")
				}
				return nil
			}, exact)
			svc.Close()
			closed.Store(true)
		}
		synctest.Wait()
	})
	bubble(t, "it ends a probe and waits for it, whose result does not count", func(t *testing.T) {
		p := newPatient()
		ended := false
		p.becomes(func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return ctx.Err()
		})
		svc := health.New(belfry.Of(echo), p.probe, exact)
		after(time.Second)
		begun := time.Now()
		svc.Close()
		if took := time.Since(begun); !ended || took != time.Second {
			t.Errorf("it has returned after %v, and the probe has ended is %v", took, ended)
		}
		if s := svc.Stats(); s.Probes != 0 {
			t.Errorf("got %+v", s)
		}
	})
	bubble(t, "for one that does not return it waits no longer than its timeout", func(t *testing.T) {
		for _, since := range []time.Duration{time.Second, time.Hour} {
			p := newPatient()
			until := make(chan struct{})
			p.becomes(deaf(until))
			svc := health.New(belfry.Of(echo), p.probe, exact)
			after(since)
			begun := time.Now()
			svc.Close()
			if took := time.Since(begun); took != 2*time.Second {
				t.Errorf("it took %v, want 2s", took)
			}
			close(until)
		}
	})
	bubble(t, "it closes the inner service once, and returns what that says", func(t *testing.T) {
		inner := &closing{Service: belfry.Of(echo), err: errIll}
		svc := health.New[int, int](inner, well, exact)
		if err := svc.Close(); err != errIll {
			t.Errorf("got %v", err)
		}
		if err := svc.Close(); err != nil || inner.n != 1 {
			t.Errorf("again: got %v, and it was closed %d times", err, inner.n)
		}
	})
	bubble(t, "closing again waits for the first", func(t *testing.T) {
		until := make(chan struct{})
		defer close(until)
		svc := health.New(belfry.Of(echo), deaf(until), exact)
		after(time.Second)
		begun := time.Now()
		go svc.Close()
		synctest.Wait()
		svc.Close()
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("it took %v, want 2s", took)
		}
	})
}

func TestLayer(t *testing.T) {
	bubble(t, "each service is probed on its own", func(t *testing.T) {
		asked := map[int]int{}
		layer := health.Layer(func(ctx context.Context, inner belfry.Service[int, int]) error {
			which, err := belfry.TryDo(ctx, inner, 0)
			asked[which]++
			if which == 2 {
				return errIll
			}
			return err
		}, exact)
		for which := 1; which <= 2; which++ {
			svc := layer(belfry.Of(func(context.Context, int) (int, error) { return which, nil }))
			after(4 * time.Second)
			if _, err := belfry.Do(t.Context(), svc, 1); (err == nil) != (which == 1) {
				t.Errorf("%d: got %v", which, err)
			}
			svc.(*service).Close()
		}
		if asked[1] != 3 || asked[2] != 3 {
			t.Errorf("probes: %v", asked)
		}
	})
	t.Run("it panics where Validate fails", func(t *testing.T) {
		for name, f := range map[string]func(){
			"no probe":           func() { health.New(belfry.Of(echo), nil, health.Config{}) },
			"New":                func() { health.New(belfry.Of(echo), well, health.Config{Jitter: 2}) },
			"no probe for Layer": func() { health.Layer[int, int](nil, health.Config{}) },
			"Layer": func() {
				health.Layer(func(context.Context, belfry.Service[int, int]) error { return nil }, health.Config{Jitter: 2})
			},
		} {
			func() {
				defer func() {
					if err, ok := recover().(error); !ok || !strings.HasPrefix(err.Error(), "health: ") {
						t.Errorf("%s: got %v", name, err)
					}
				}()
				f()
			}()
		}
	})
}

func TestValidate(t *testing.T) {
	if err := health.Validate(nil, health.Config{}); err == nil || err.Error() != "health: probe must not be nil" {
		t.Errorf("got %v", err)
	}
	for _, c := range []struct {
		cfg  health.Config
		want string
	}{
		{health.Config{}, ""},
		{health.Config{Interval: time.Millisecond}, ""},
		{health.Config{Interval: time.Second, FastInterval: time.Second, Jitter: 1, Timeout: 1, Unhealthy: 1, Healthy: 1}, ""},
		{health.Config{Interval: 1}, "health: interval must be at least 1ms, or 0 for the default, got 1ns"},
		{health.Config{Interval: -1}, "health: interval must be"},
		{health.Config{FastInterval: 1}, "health: fast interval must be 1ms to the interval (10s), or 0 for the default, got 1ns"},
		{health.Config{FastInterval: 11 * time.Second}, "health: fast interval must be"},
		{health.Config{Interval: time.Second, FastInterval: 2 * time.Second}, "health: fast interval must be 1ms to the interval (1s)"},
		{health.Config{Jitter: -1}, "health: jitter must be within 0 and 1, got -1"},
		{health.Config{Jitter: math.NaN()}, "health: jitter must be"},
		{health.Config{Timeout: -1}, "health: timeout must not be negative, got -1ns"},
		{health.Config{Unhealthy: -1}, "health: unhealthy must be at least 1, or 0 for the default, got -1"},
		{health.Config{Healthy: -1}, "health: healthy must be at least 1, or 0 for the default, got -1"},
	} {
		err := health.Validate(well, c.cfg)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.cfg, err, c.want)
		}
	}
}
