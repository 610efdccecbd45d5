package balance_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/load"
)

// A talker is an endpoint whose server says how busy it is.
type talker struct {
	belfry.Service[int, int]
	calls  atomic.Int64
	says   atomic.Int64 // in flight; below 0 it is not to be believed
	silent bool         // in its answers
	told   func(load.Report)
	probe  func(ctx context.Context) error // before a probe is answered
}

func newTalker(says int64) *talker {
	t := &talker{}
	t.says.Store(says)
	t.Service = belfry.Func[int, int](func(context.Context, int) (int, error) {
		t.calls.Add(1)
		time.Sleep(time.Millisecond)
		if t.told != nil && !t.silent {
			t.told(t.report())
		}
		return 0, nil
	})
	return t
}

func (t *talker) report() load.Report { return load.Report{InFlight: float64(t.says.Load())} }

func (t *talker) OnReport(told func(load.Report)) { t.told = told }

func (t *talker) Probe(ctx context.Context) (load.Report, error) {
	if t.probe != nil {
		if err := t.probe(ctx); err != nil {
			return load.Report{}, err
		}
	}
	return t.report(), nil
}

// talk returns a balancer over the talkers, which are all up.
func talk(t *testing.T, cfg balance.Config, all map[string]*talker) *balance.Balancer[int, int] {
	t.Helper()
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	b, err := balance.New(discover.List(keys...), func(_ context.Context, key, _ string) (belfry.Service[int, int], error) {
		return all[key], nil
	}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return b
}

func send(t *testing.T, b *balance.Balancer[int, int], n int) {
	t.Helper()
	for range n {
		if _, err := belfry.Do(t.Context(), b, 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // for probes
	}
}

func TestReports(t *testing.T) {
	bubble(t, "what servers report steers picks", func(t *testing.T) {
		busy, free := newTalker(50), newTalker(1)
		b := talk(t, balance.Config{Load: load.Reported{Trust: time.Minute}}, map[string]*talker{"busy": busy, "free": free})
		send(t, b, 200)
		if got := free.calls.Load(); got < 190 {
			t.Errorf("the free one has got %d of 200", got)
		}
		busy.says.Store(0)
		free.says.Store(50)
		time.Sleep(time.Hour) // old news
		send(t, b, 200)
		if got := busy.calls.Load(); got < 150 {
			t.Errorf("the one that was busy has got %d of 200", got)
		}
	})
	bubble(t, "what is not to be believed is counted and ignored", func(t *testing.T) {
		liar, honest := newTalker(-1), newTalker(2)
		b := talk(t, balance.Config{Load: load.Reported{}}, map[string]*talker{"liar": liar, "honest": honest})
		send(t, b, 50)
		for _, ep := range b.Stats().Endpoints {
			if math.IsNaN(ep.Cost) || ep.Cost < 0 {
				t.Errorf("%s costs %v", ep.Key, ep.Cost)
			}
			reports, bad := uint64(honest.calls.Load()), uint64(0)
			if ep.Key == "liar" {
				reports, bad = 0, uint64(liar.calls.Load())
			}
			if ep.Reports != reports || ep.BadReports != bad {
				t.Errorf("%s: %d reports, %d bad ones, want %d and %d", ep.Key, ep.Reports, ep.BadReports, reports, bad)
			}
		}
	})
	bubble(t, "a metric that does not listen is told nothing", func(t *testing.T) {
		a := newTalker(1)
		b := talk(t, balance.Config{}, map[string]*talker{"a": a})
		send(t, b, 5)
		if s := b.Stats(); a.told != nil || s.Endpoints[0].Reports != 0 || s.Probes.Sent != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// probing probes with each call.
var probing = load.Probing{PerCall: 100, Reported: load.Reported{Trust: time.Microsecond}}

func TestProbes(t *testing.T) {
	bubble(t, "what servers answer to probes steers picks", func(t *testing.T) {
		all := map[string]*talker{}
		for _, key := range []string{"a", "b", "c", "d", "free"} {
			all[key] = newTalker(50)
			all[key].silent = true
		}
		all["free"].says.Store(0)
		b := talk(t, balance.Config{Load: load.Probing{PerCall: 100, Reported: load.Reported{Trust: time.Minute}}}, all)
		send(t, b, 200)
		if got := all["free"].calls.Load(); got < 180 {
			t.Errorf("the free one has got %d of 200", got)
		}
		if s := b.Stats().Probes; s.Sent == 0 || s.Failed != 0 || s.Refused != 0 || s.InFlight != 0 {
			t.Errorf("probes: %+v", s)
		}
	})
	bubble(t, "calls do not wait for probes, which end in time", func(t *testing.T) {
		a := newTalker(1)
		a.probe = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		b := talk(t, balance.Config{Load: probing, ProbeTimeout: 3 * time.Second}, map[string]*talker{"a": a})
		began := time.Now()
		send(t, b, 1)
		if took := time.Since(began); took != time.Millisecond {
			t.Errorf("a call took %v", took)
		}
		if s := b.Stats().Probes; s.InFlight != 1 || s.Sent != 1 {
			t.Errorf("probes: %+v, want one", s)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if s := b.Stats().Probes; s.InFlight != 0 || s.Failed != 1 {
			t.Errorf("probes: %+v, want one that failed", s)
		}
	})
	bubble(t, "Close ends probes and waits for them", func(t *testing.T) {
		a := newTalker(1)
		ended := false
		a.probe = func(ctx context.Context) error { <-ctx.Done(); ended = true; return ctx.Err() }
		b := talk(t, balance.Config{Load: probing, ProbeTimeout: time.Hour}, map[string]*talker{"a": a})
		send(t, b, 1)
		if err := b.Close(); err != nil || !ended {
			t.Errorf("%v, the probe has ended: %v", err, ended)
		}
	})
	bubble(t, "no more than the budget pays for, nor than may be in flight", func(t *testing.T) {
		for _, c := range []struct {
			cfg  balance.Config
			most uint64
		}{
			{balance.Config{ProbeBudget: budget.New(budget.Config{NoRatio: true, NoReserve: true})}, 0},
			{balance.Config{ProbeBudget: budget.New(budget.Config{NoRatio: true, Reserve: 0.2})}, 2},
			{balance.Config{MaxProbes: 1}, 1},
		} {
			all := map[string]*talker{"a": newTalker(1), "b": newTalker(1), "c": newTalker(1)}
			for _, talker := range all {
				talker.probe = func(ctx context.Context) error { <-ctx.Done(); return nil }
			}
			c.cfg.Load = probing
			b := talk(t, c.cfg, all)
			send(t, b, 20)
			if s := b.Stats().Probes; s.Sent != c.most || s.Refused == 0 {
				t.Errorf("probes: %+v, want %d", s, c.most)
			}
			b.Close()
		}
	})
	bubble(t, "an answer that panics, or is not to be believed, has failed", func(t *testing.T) {
		a, c := newTalker(1), newTalker(-1)
		a.probe = func(context.Context) error { panic("in a probe") }
		b := talk(t, balance.Config{Load: probing}, map[string]*talker{"a": a, "c": c})
		send(t, b, 20)
		if s := b.Stats().Probes; s.Sent == 0 || s.Failed != s.Sent || s.InFlight != 0 {
			t.Errorf("probes: %+v, want all to fail", s)
		}
	})
	bubble(t, "a preferred endpoint that is ejected is left alone", func(t *testing.T) {
		all := map[string]*talker{"out": newTalker(0), "b": newTalker(5), "c": newTalker(5)}
		ejected := make(chan *eject.Endpoint, 1)
		b, err := balance.New(discover.List("out", "b", "c"), func(ctx context.Context, key, _ string) (belfry.Service[int, int], error) {
			if key == "out" {
				ejected <- eject.From(ctx)
			}
			return all[key], nil
		}, balance.Config{Load: load.Probing{PerCall: 100, Reported: load.Reported{Trust: time.Minute}}})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		synctest.Wait()
		send(t, b, 20)
		before := all["out"].calls.Load()
		(<-ejected).Force(time.Now(), eject.Health, time.Now().Add(time.Hour))
		send(t, b, 50)
		if got := all["out"].calls.Load() - before; before == 0 || got != 0 {
			t.Errorf("it has got %d of 20 before, and %d of 50 after", before, got)
		}
	})
	bubble(t, "a preferred endpoint without room gives way", func(t *testing.T) {
		full, other := newTalker(0), newTalker(5)
		full.Service = refusing{}
		b := talk(t, balance.Config{Load: load.Probing{PerCall: 100}}, map[string]*talker{"full": full, "other": other})
		send(t, b, 50)
		if got := other.calls.Load(); got != 50 {
			t.Errorf("the other one has got %d of 50", got)
		}
	})
}

// A refusing service never has room, and never will.
type refusing struct{}

func (refusing) Acquire(ctx context.Context) (belfry.Permit, error) {
	<-ctx.Done()
	return belfry.Permit{}, &belfry.Rejection{Layer: "test", Reason: "full", Err: ctx.Err()}
}
func (refusing) Release(belfry.Permit) {}
func (refusing) Call(context.Context, belfry.Permit, int) (int, error) {
	return 0, errors.New("called without room")
}

func TestProbeConfigValidate(t *testing.T) {
	for _, c := range []balance.Config{{ProbeTimeout: -1}, {MaxProbes: -1}, {Load: load.Probing{PerCall: -1}}} {
		if c.Validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
