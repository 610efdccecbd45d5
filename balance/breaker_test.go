package balance_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	breakers "github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/load"
)

// A patient is an endpoint behind a breaker.
type patient struct {
	*breakers.Service[int, int]
	ill, calls, asked atomic.Int64 // ill is 1 while it fails
}

var errPatient = errors.New("ill")

func (p *patient) Acquire(ctx context.Context) (belfry.Permit, error) {
	p.asked.Add(1)
	return p.Service.Acquire(ctx)
}

func (p *patient) call(_ context.Context, n int) (int, error) {
	p.calls.Add(1)
	time.Sleep(time.Millisecond)
	if p.ill.Load() == 1 {
		return 0, errPatient
	}
	return n, nil
}

// hospital is a world of n endpoints behind breakers of their own, which pause for exactly a minute, then two, and so on.
func hospital(t *testing.T, n int, metric load.Metric, wait bool) (*world, []*patient) {
	const seed = 7
	t.Logf("seed %d", seed)
	var all []*patient
	w := &world{dial: func(context.Context, string, string) (service, error) {
		p := &patient{}
		p.Service = breakers.New(belfry.Of(p.call), breakers.Config{
			Consecutive: 3, MinBackoff: time.Minute, MaxBackoff: time.Hour, Jitter: 1e-9, Wait: wait,
		})
		all = append(all, p)
		return p, nil
	}}
	newWorldOf(t, w, balance.Config{Load: metric, Rand: rand.NewPCG(seed, seed)})
	for i := range n {
		w.add(string(rune('a' + i)))
	}
	return w, all
}

// sends sends n requests, and returns how many failed.
func (w *world) sends(n int) (failed int) {
	for range n {
		if _, err := belfry.Do(w.t.Context(), w.balancer, 1); err != nil {
			failed++
		}
	}
	return failed
}

func TestBreakerPerEndpoint(t *testing.T) {
	for name, metric := range map[string]load.Metric{"constant cost": load.Constant(nil), "the default cost": nil} {
		bubble(t, "S16 one that is open gets no calls, and calls again when it has recovered: "+name, func(t *testing.T) {
			w, all := hospital(t, 3, metric, false)
			a := all[0]
			a.ill.Store(1)
			for a.Stats().State != breakers.Open {
				w.sends(1)
				time.Sleep(100 * time.Millisecond) // so that costs decay, and it is tried
			}
			calls := a.calls.Load()
			if failed := w.sends(1000); failed != 0 || a.calls.Load() != calls {
				t.Fatalf("%d failed, and %d calls went to the one that is open", failed, a.calls.Load()-calls)
			}
			w.wantStates("a:not ready b:ready c:ready")
			time.Sleep(time.Minute)
			for i := 0; a.Stats().State == breakers.Open && i < 1000; i++ {
				w.sends(1)
				time.Sleep(100 * time.Millisecond)
			}
			if got := a.Stats(); got.Probes != 1 || got.State != breakers.Open || a.calls.Load() != calls+1 {
				t.Fatalf("after the pause there was not the one probe: %+v, %d calls", got, a.calls.Load()-calls)
			}
			a.ill.Store(0)
			time.Sleep(2 * time.Minute)
			if failed := w.sends(1000); failed != 0 || a.Stats().State != breakers.Closed || a.calls.Load() < calls+100 {
				t.Fatalf("%d failed; it is %v, and had %d calls", failed, a.Stats().State, a.calls.Load()-calls)
			}
			w.wantStates("a:ready b:ready c:ready")
		})
	}
	for _, wait := range []bool{false, true} {
		name := map[bool]string{false: "it refuses", true: "it waits"}[wait]
		bubble(t, "S16 callers wait for the only one, and nobody spins: "+name, func(t *testing.T) {
			w, all := hospital(t, 1, nil, wait)
			a := all[0]
			a.ill.Store(1)
			w.sends(3)
			opened := time.Now()
			asked := a.asked.Load()
			line := []*waiting{w.wait(), w.wait(), w.wait()}
			time.Sleep(time.Minute - time.Second)
			if n := a.asked.Load() - asked; n > 5 { // once each, and its driver
				t.Errorf("it was asked %d times in a minute", n)
			}
			time.Sleep(time.Second + time.Millisecond)
			line[0].wantGranted() // the probe
			line[1].wantWaiting()
			if took := time.Since(opened).Round(10 * time.Millisecond); took != time.Minute {
				t.Errorf("the probe went after %v", took)
			}
			_, _ = w.Call(t.Context(), line[0].permit, 1)
			asked = a.asked.Load()
			a.ill.Store(0)
			time.Sleep(2 * time.Minute)
			if n := a.asked.Load() - asked; n > 5 {
				t.Errorf("it was asked %d times in two minutes", n)
			}
			line[1].wantGranted()
			if _, err := w.Call(t.Context(), line[1].permit, 1); err != nil {
				t.Error(err)
			}
			line[2].wantGranted()
			w.Release(line[2].permit)
			if got := a.Stats(); got.State != breakers.Closed || got.Waiting != 0 {
				t.Errorf("left behind: %+v", got)
			}
		})
	}
	bubble(t, "S16 while a probe is out, its driver does not spin, and hands over what it closes for", func(t *testing.T) {
		w, all := hospital(t, 1, nil, false)
		a := all[0]
		a.Trip(0)
		time.Sleep(time.Minute)
		probe, err := w.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		line := w.wait()
		asked := a.asked.Load()
		time.Sleep(10 * time.Second)
		if n := a.asked.Load() - asked; n > 250 { // the longest pause after a refusal that names none is 100 ms, less by chance
			t.Errorf("it was asked %d times in ten seconds", n)
		}
		line.wantWaiting()
		if _, err := w.Call(t.Context(), probe, 1); err != nil {
			t.Fatal(err)
		}
		line.wantGranted()
		w.Release(line.permit)
	})
	bubble(t, "S16 a driver that nobody waits for any more gives its probe back", func(t *testing.T) {
		w, all := hospital(t, 1, nil, false)
		a := all[0]
		a.Trip(0)
		line := w.wait()
		line.cancel()
		line.wantFailed()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if failed := w.sends(1); failed != 0 {
			t.Error("the probe is lost")
		}
		if got := a.Stats(); got.State != breakers.Closed {
			t.Errorf("it is %+v", got)
		}
	})
	bubble(t, "S16 removing an endpoint ends the wait in its breaker", func(t *testing.T) {
		w, all := hospital(t, 1, nil, true)
		all[0].Trip(time.Hour)
		w.wait().cancel()
		w.add("b")
		w.remove("a")
		if got := all[0].Stats(); got.Waiting != 0 {
			t.Errorf("somebody still waits: %+v", got)
		}
	})
}
