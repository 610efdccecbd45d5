package outlier_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/outlier"
)

// bubble runs a case in a bubble.
func bubble(t *testing.T, name string, run func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
}

// chance is a source of random numbers that always returns the same fraction.
type chance float64

func (c chance) Uint64() uint64 { return uint64(float64(c) * (1 << 53)) }

// exact is a Config without chance: ejections last 30 s, then a minute, and so on.
var exact = outlier.Config{Jitter: 1e-9, Rand: chance(0)}

var epoch = time.Unix(1_700_000_000, 0)

// A fleet is endpoints of a Detector in a time of the test's own.
type fleet struct {
	t     *testing.T
	d     *outlier.Detector
	guard *eject.Guard
	all   []*outlier.Endpoint
	now   time.Time
}

func newFleet(t *testing.T, n int, cfg outlier.Config, rail eject.Config) *fleet {
	t.Helper()
	f := &fleet{t: t, d: outlier.NewDetector(cfg), guard: eject.New(rail), now: epoch}
	for range n {
		e := f.guard.New()
		e.Join()
		f.all = append(f.all, f.d.Join(e))
	}
	return f
}

// interval lets all that are in do a hundred calls in ten seconds, of which those of the first bad fail so often.
func (f *fleet) interval(bad, failures int) {
	for call := range 100 {
		f.now = f.now.Add(100 * time.Millisecond)
		for i, e := range f.all {
			kind := belfry.Success
			if i < bad && call < failures {
				kind = belfry.Failure
			}
			if e.Ejected(f.now) == 0 {
				e.End(f.now, 10*time.Millisecond, kind)
			}
		}
	}
}

// ejected returns for how many seconds each is out.
func (f *fleet) ejected() (all []int) {
	for _, e := range f.all {
		all = append(all, int(math.Round(e.Ejected(f.now).Seconds())))
	}
	return all
}

func TestDetector(t *testing.T) {
	t.Run("a grey server is out after an interval, for longer each time, and back when it is well", func(t *testing.T) {
		f := newFleet(t, 5, exact, eject.Config{})
		f.interval(1, 20)
		f.interval(1, 20)
		var times []time.Duration
		for range 400 {
			if s := f.all[0].StatsAt(f.now); s.Ejections > uint64(len(times)) {
				times = append(times, s.Left.Round(10*time.Second))
			}
			f.interval(1, 20)
		}
		want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute}
		for i, d := range want {
			if i >= len(times) || times[i] < d-10*time.Second || times[i] > d {
				t.Fatalf("it was ejected for %v, want %v", times, want)
			}
		}
		for range 50 { // it gets well, and what it did is forgiven step by step
			f.interval(0, 0)
		}
		before := f.all[0].StatsAt(f.now).Ejections
		f.interval(1, 50)
		f.interval(1, 50)
		if s := f.all[0].StatsAt(f.now); s.Ejections != before+1 || s.Left > 30*time.Second {
			t.Errorf("after a good time: %+v", s)
		}
	})
	t.Run("the guard rail leaves the others in, and the worst are out first", func(t *testing.T) {
		f := newFleet(t, 20, exact, eject.Config{})
		for call := range 100 {
			f.now = f.now.Add(100 * time.Millisecond)
			for i, e := range f.all {
				kind := belfry.Success
				if i < 5 && call < 20*(i+1) {
					kind = belfry.Failure
				}
				e.End(f.now, time.Millisecond, kind)
			}
		}
		f.interval(0, 0) // whose first call is compared with what was before
		out := f.ejected()
		if out[4] == 0 || out[3] == 0 || out[2]+out[1]+out[0] != 0 {
			t.Errorf("ejected are %v, want the two worst of five", out)
		}
		if s := f.all[0].StatsAt(f.now); s.Spared != 1 {
			t.Errorf("%+v, want it spared once", s)
		}
		if s := f.guard.Stats(f.now); s.Out != 2 || s.Refused[eject.Outlier] != 3 {
			t.Errorf("the guard rail says %+v", s)
		}
	})
	t.Run("half of them bad is nobody's fault", func(t *testing.T) {
		f := newFleet(t, 10, exact, eject.Config{MaxShare: 1})
		for range 5 {
			f.interval(5, 90)
		}
		for i, s := range f.ejected() {
			if s != 0 {
				t.Errorf("%d is out", i)
			}
		}
	})
	t.Run("what was ignored, and who has left, does not count", func(t *testing.T) {
		f := newFleet(t, 4, exact, eject.Config{})
		for range 100 {
			f.all[0].End(f.now, 0, belfry.Ignored)
		}
		f.interval(0, 0)
		if s := f.all[0].StatsAt(f.now); s.Success != 1 && s.Calls > 0 {
			t.Errorf("%+v", s)
		}
		f.all[3].Leave()
		f.all[3].Leave()
		f.interval(0, 0)
		f.interval(0, 0)
		if s := f.all[0].StatsAt(f.now); s.Peers != 3 {
			t.Errorf("%d peers, want 3", s.Peers)
		}
	})
}

func TestSlowOnesAreOutByOption(t *testing.T) {
	for _, factor := range []float64{0, 3} {
		cfg := exact
		cfg.Latency = factor
		var told []outlier.Verdict
		cfg.OnEject = func(v outlier.Verdict) { told = append(told, v); panic("lost") }
		f := newFleet(t, 5, cfg, eject.Config{})
		for range 201 {
			f.now = f.now.Add(100 * time.Millisecond)
			for i, e := range f.all {
				took := 10 * time.Millisecond
				if i == 0 {
					took *= 5
				}
				e.End(f.now, took, belfry.Success)
			}
		}
		want := 0
		if factor > 0 {
			want = 1
		}
		if len(told) < want || want == 0 && len(told) > 0 || (f.all[0].StatsAt(f.now).Ejections > 0) != (want == 1) {
			t.Errorf("factor %v: told %+v", factor, told)
		}
		if want == 1 && (!told[0].Slow || told[0].Endpoint != f.all[0] || told[0].For != 30*time.Second) {
			t.Errorf("told %+v", told[0])
		}
	}
}

var errIll = errors.New("ill")

func TestService(t *testing.T) {
	ill := func(_ context.Context, n int) (int, error) { return 0, errIll }
	well := func(_ context.Context, n int) (int, error) { return n, nil }
	services := func(first func(context.Context, int) (int, error)) []*outlier.Service[int, int] {
		d := outlier.NewDetector(exact)
		all := []*outlier.Service[int, int]{outlier.New(belfry.Of(first), d, nil)}
		for range 3 {
			all = append(all, outlier.New(belfry.Of(well), d, nil))
		}
		return all
	}
	run := func(t *testing.T, all []*outlier.Service[int, int]) {
		t.Helper()
		for range 220 {
			for _, s := range all {
				_, _ = belfry.Do(t.Context(), s, 1)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	bubble(t, "an outlier refuses, says for how long, and is in again after that", func(t *testing.T) {
		all := services(ill)
		run(t, all)
		_, err := belfry.Do(t.Context(), all[0], 1)
		r, ok := errors.AsType[*belfry.Rejection](err)
		if !ok || r.Layer != "outlier" || !errors.Is(err, belfry.ErrNotReady) || r.RetryAfter <= 0 || r.RetryAfter > 30*time.Second {
			t.Fatalf("got %v", err)
		}
		if _, err := belfry.Do(eject.Panic(t.Context()), all[0], 1); !errors.Is(err, errIll) {
			t.Errorf("who has nobody else to ask got %v", err)
		}
		if s := all[0].Stats(); !s.Ejected || s.Refused == 0 || s.MedianSuccess != 1 || s.Success != 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(r.RetryAfter)
		if _, err := belfry.Do(t.Context(), all[0], 1); !errors.Is(err, errIll) {
			t.Errorf("afterwards it got %v", err)
		}
	})
	bubble(t, "a panic is a failure", func(t *testing.T) {
		all := services(func(context.Context, int) (int, error) { panic("ill") })
		for range 220 {
			for _, s := range all {
				func() {
					defer func() { _ = recover() }()
					_, _ = belfry.Do(t.Context(), s, 1)
				}()
			}
			time.Sleep(50 * time.Millisecond)
		}
		if s := all[0].Stats(); !s.Ejected {
			t.Errorf("%+v", s)
		}
	})
}

func TestConcurrently(t *testing.T) {
	cfg := exact
	cfg.Interval, cfg.Latency = 10*time.Millisecond, 2
	f := newFleet(t, 8, cfg, eject.Config{})
	var wg sync.WaitGroup
	for i, e := range f.all {
		wg.Go(func() {
			for n := range 5000 {
				kind := belfry.Success
				if i == 0 && n%2 == 0 {
					kind = belfry.Failure
				}
				e.End(epoch.Add(time.Duration(n)*time.Millisecond), time.Millisecond, kind)
				_ = e.Ejected(epoch)
				if n%100 == 0 {
					_ = e.StatsAt(epoch)
				}
			}
		})
	}
	wg.Wait()
	if s := f.guard.Stats(epoch); s.Out > s.Allowed {
		t.Errorf("%+v", s)
	}
}

func TestContract(t *testing.T) {
	belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		svc := outlier.New(inner, outlier.NewDetector(outlier.Config{Latency: 2}), nil)
		return svc, func() {}
	})
}

func TestConfig(t *testing.T) {
	for want, cfg := range map[string]outlier.Config{
		"interval":       {Interval: time.Millisecond},
		"min endpoints":  {MinEndpoints: 2},
		"min calls":      {MinCalls: -1},
		"deviations":     {Deviations: math.NaN()},
		"gap":            {Gap: 1.5},
		"latency":        {Latency: 0.5},
		"ignore failure": {IgnoreFailures: true},
		"max":            {MinEjection: time.Minute, MaxEjection: time.Second},
		"jitter":         {Jitter: 2},
	} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want something about %q", cfg, err, want)
		}
	}
	if err := (outlier.Config{}).Validate(); err != nil {
		t.Error(err)
	}
}

func BenchmarkCall(b *testing.B) {
	svc := outlier.New(belfry.Of(func(_ context.Context, n int) (int, error) { return n, nil }), outlier.NewDetector(outlier.Config{Latency: 3}), nil)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = belfry.Do(b.Context(), svc, 1)
	}
}
