package balance_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	breakers "github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/load"
)

// ward is a hospital with a guard rail.
func ward(t *testing.T, n int, cfg eject.Config) (*world, []*patient) {
	t.Helper()
	return wardOf(t, n, balance.Config{Load: load.Constant(nil), Eject: cfg})
}

func wardOf(t *testing.T, n int, cfg balance.Config) (*world, []*patient) {
	t.Helper()
	var all []*patient
	w := &world{dial: func(ctx context.Context, _, _ string) (service, error) {
		p := &patient{}
		p.Service = breakers.New(belfry.Of(p.call), breakers.Config{
			Consecutive: 3, MinBackoff: time.Minute, MaxBackoff: time.Hour, Jitter: 1e-9, Guard: eject.From(ctx),
		})
		all = append(all, p)
		return p, nil
	}}
	newWorldOf(t, w, cfg)
	for i := range n {
		w.add(string(rune('a' + i)))
	}
	return w, all
}

func TestGuardRail(t *testing.T) {
	bubble(t, "a tenth may be out, however many fail", func(t *testing.T) {
		w, all := ward(t, 20, eject.Config{})
		for _, p := range all[:10] {
			p.ill.Store(1)
		}
		w.sends(2000)
		s, open := w.Stats(), 0
		for _, p := range all {
			if p.Stats().State == breakers.Open {
				open++
			}
		}
		if open != 2 || s.Guard.Out != 2 || s.Guard.Endpoints != 20 || s.Guard.Refused[eject.Breaker] == 0 {
			t.Errorf("%d breakers are open, the guard rail says %+v", open, s.Guard)
		}
		n := 0
		for _, ep := range s.Endpoints {
			if len(ep.Ejected) == 1 && ep.Ejected[0] == eject.Breaker && ep.Until > 0 {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%d endpoints say that they are out, want 2", n)
		}
	})
	bubble(t, "the last one is never out", func(t *testing.T) {
		w, all := ward(t, 1, eject.Config{MaxShare: 1})
		all[0].ill.Store(1)
		if failed := w.sends(100); failed != 100 || all[0].calls.Load() != 100 || all[0].Stats().State != breakers.Closed {
			t.Errorf("%d failed, %d were sent", failed, all[0].calls.Load())
		}
	})
	bubble(t, "what is out is not even asked, and is probed when it is time", func(t *testing.T) {
		w, all := ward(t, 2, eject.Config{})
		all[0].ill.Store(1)
		for all[0].Stats().State != breakers.Open {
			w.sends(1)
		}
		asked := all[0].asked.Load()
		if failed := w.sends(100); failed != 0 || all[0].asked.Load() != asked {
			t.Errorf("%d failed, and it was asked %d times", failed, all[0].asked.Load()-asked)
		}
		all[0].ill.Store(0)
		synctest.Wait()
		time.Sleep(time.Minute)
		if w.sends(100); all[0].Stats().State != breakers.Closed {
			t.Errorf("it is %v", all[0].Stats().State)
		}
		if s := w.Stats(); s.Guard.Out != 0 || s.Panics != (balance.Panics{}) {
			t.Errorf("%+v", s)
		}
	})
}

// Where a Config allows that all are out, they are asked all the same.
func TestPanicIsGraded(t *testing.T) {
	everybody := eject.Config{MaxShare: 1, Keep: -1}
	open := func(w *world, p *patient) {
		p.ill.Store(1)
		for p.Stats().State != breakers.Open {
			w.sends(1)
		}
	}
	for _, c := range []struct {
		name  string
		cfg   balance.Config
		pairs float64
	}{
		{"ready ones come first", balance.Config{}, 4},
		{"also where endpoints are in groups, of which one pair is drawn", balance.Config{ByKey: true}, 1},
	} {
		bubble(t, c.name, func(t *testing.T) {
			c.cfg.Load, c.cfg.Eject = load.Constant(nil), everybody
			w, all := wardOf(t, 20, c.cfg)
			for _, p := range all[1:] {
				open(w, p)
			}
			before := w.Stats().Panics.Ready
			const sent = 2000
			if failed := w.sends(sent); failed != 0 || all[0].calls.Load() < sent {
				t.Errorf("%d failed", failed)
			}
			// The pair of 20 has the one that is in with probability 0.1.
			share, want := float64(w.Stats().Panics.Ready-before)/sent, math.Pow(0.9, c.pairs)
			if math.Abs(share-want) > 0.05 {
				t.Errorf("%.3f of the picks had to look at all, want about %.3f", share, want)
			}
		})
	}
	bubble(t, "then those that are to be tried, then the one whose failure is the longest ago", func(t *testing.T) {
		w, all := ward(t, 3, everybody)
		for _, p := range all {
			open(w, p)
			time.Sleep(time.Second)
		}
		for i, p := range all {
			calls := p.calls.Load()
			if w.sends(1); p.calls.Load() != calls+1 {
				t.Errorf("call %d did not go to the one whose turn it is", i)
			}
		}
		if got := w.Stats().Panics; got.Failed != 3 || got.Probing != 0 {
			t.Errorf("counted %+v", got)
		}
		time.Sleep(time.Minute - 3*time.Second) // the first may be probed
		first, err := w.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Stats().Panics; got.Probing != 1 {
			t.Errorf("counted %+v: the second call goes to the one that is being probed", got)
		}
		w.Release(first)
		w.Release(second)
	})
	bubble(t, "not while one that is in has no room", func(t *testing.T) {
		busy := make(chan struct{})
		w := &world{dial: func(ctx context.Context, key, _ string) (service, error) {
			if key == "out" {
				e := eject.From(ctx)
				e.Force(time.Now(), eject.Health, time.Now().Add(time.Hour))
				return echo(), nil
			}
			return full{busy}, nil
		}}
		newWorldOf(t, w, balance.Config{})
		w.add("out", "busy")
		line := w.wait()
		time.Sleep(time.Minute)
		line.wantWaiting()
		close(busy)
		line.wantGranted()
		w.Release(line.permit)
		if got := w.Stats().Panics; got != (balance.Panics{}) {
			t.Errorf("counted %+v", got)
		}
	})
	bubble(t, "who waits is served by one that is out when it is all there is", func(t *testing.T) {
		busy := make(chan struct{})
		w := &world{dial: func(ctx context.Context, _, _ string) (service, error) {
			eject.From(ctx).Force(time.Now(), eject.Health, time.Now().Add(time.Hour))
			return full{busy}, nil
		}}
		newWorldOf(t, w, balance.Config{})
		w.add("out")
		line := w.wait()
		line.wantWaiting()
		close(busy)
		line.wantGranted()
		w.Release(line.permit)
	})
}

// full has no room until a channel is closed.
type full struct{ until chan struct{} }

func (f full) Acquire(ctx context.Context) (belfry.Permit, error) {
	select {
	case <-f.until:
		return belfry.Permit{}, nil
	case <-ctx.Done():
		return belfry.Permit{}, ctx.Err()
	}
}

func (full) Call(_ context.Context, _ belfry.Permit, n int) (int, error) { return n, nil }
func (full) Release(belfry.Permit)                                       {}

// An endpoint that says it is overloaded gets nothing until then, within bounds.
func TestRetryAfterSteers(t *testing.T) {
	overloaded := func(after time.Duration, kind belfry.Kind) belfry.Semantics[int, int] {
		return belfry.Semantics[int, int]{Classify: func(_ int, err error) belfry.Outcome {
			if err != nil {
				return belfry.Outcome{Kind: kind, RetryAfter: after}
			}
			return belfry.Outcome{}
		}}
	}
	for _, c := range []struct {
		name      string
		asks, max time.Duration
		kind      belfry.Kind
		want      time.Duration
	}{
		{"as long as it asks for", 5 * time.Second, 0, belfry.Failure, 5 * time.Second},
		{"half a minute at most", time.Hour, 0, belfry.Failure, 30 * time.Second},
		{"or as long as one is told", time.Hour, time.Minute, belfry.Failure, time.Minute},
		{"unless one is told not to", time.Hour, -1, belfry.Failure, 0},
		{"a refusal is no answer", time.Hour, 0, belfry.Ignored, 0},
	} {
		bubble(t, c.name, func(t *testing.T) {
			calls := map[string]int{}
			w := &world{dial: func(_ context.Context, key, _ string) (service, error) {
				return belfry.Of(func(_ context.Context, n int) (int, error) {
					if calls[key]++; key == "a" {
						return 0, errPatient
					}
					return n, nil
				}), nil
			}}
			newWorldOf(t, w, balance.Config{Load: load.Constant(nil), MaxRetryAfter: c.max}, overloaded(c.asks, c.kind))
			w.add("a", "b")
			for calls["a"] == 0 {
				w.sends(1)
			}
			if got := w.endpoint("a").Until; got != c.want {
				t.Errorf("it is left alone for %v, want %v", got, c.want)
			}
			if c.want == 0 {
				return
			}
			time.Sleep(c.want - 1)
			if failed := w.sends(100); failed != 0 {
				t.Errorf("%d of 100 went there", failed)
			}
			time.Sleep(time.Nanosecond)
			for calls["a"] == 1 {
				w.sends(1)
			}
		})
	}
	bubble(t, "the last ones stay in", func(t *testing.T) {
		w := &world{dial: func(context.Context, string, string) (service, error) {
			return belfry.Of(func(context.Context, int) (int, error) { return 0, errPatient }), nil
		}}
		newWorldOf(t, w, balance.Config{}, overloaded(time.Minute, belfry.Failure))
		w.add("a", "b", "c")
		if failed := w.sends(300); failed != 300 {
			t.Errorf("%d of 300 failed", failed)
		}
		if s := w.Stats(); s.Guard.Out != 1 || s.Guard.Refused[eject.Overload] == 0 || s.Panics != (balance.Panics{}) {
			t.Errorf("%+v", s.Guard)
		}
	})
}
