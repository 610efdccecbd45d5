package balance_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// bubble runs a case in a bubble.
func bubble(t *testing.T, name string, run func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
}

// TestReadyCache has the cases of tower's ready cache: what becomes of endpoints.
func TestReadyCache(t *testing.T) {
	bubble(t, "RC1 a failing endpoint stays listed, backs off and comes back; the other serves", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").FailAcquire(errLost)
		w.add("a", "b")
		w.backend("b").Allow(2)
		w.wantStates("a:backing off b:ready")
		if got := w.endpoint("a").Err; !errors.Is(got, errLost) {
			t.Errorf("the error of a is %v, want %v", got, errLost)
		}
		w.do("b", 1)
		w.do("b", 2)
		w.backend("a").Allow(1)
		time.Sleep(time.Second)
		w.wantStates("a:ready b:ready")
		if got := w.endpoint("a").Err; got != nil {
			t.Errorf("the error of a is %v after it came back", got)
		}
		w.do("a", 3)
		err := w.refused()
		if e, ok := errors.AsType[*balance.NoEndpointsError](err); ok {
			t.Errorf("everybody is well, and just not ready: %v", e)
		}
	})
	bubble(t, "RC1 the pauses begin small again", func(t *testing.T) {
		w := newWorld(t, balance.Config{MinBackoff: time.Second, MaxBackoff: time.Hour})
		w.say(discover.Insert("a"), nil)
		time.Sleep(24 * time.Hour)
		w.backend("a").Allow(1)
		time.Sleep(time.Hour)
		w.wantStates("a:ready")
		w.backend("a").FailAcquire(errLost)
		w.wantRefused()
		w.wantStates("a:backing off")
		time.Sleep(time.Second)
		w.wantStates("a:ready")
	})
	bubble(t, "RC1 a failing endpoint is not shown as ready because its calls end, nor tried for that", func(t *testing.T) {
		w := newWorld(t, balance.Config{MinBackoff: time.Hour, MaxBackoff: time.Hour})
		w.backend("a").Allow(2)
		w.add("a")
		first, _ := w.reserve()
		second, _ := w.reserve()
		a := w.wait()
		w.answer(first, "a", 1)
		w.backend("a").FailAcquire(errLost)
		w.wantStates("a:backing off")
		w.backend("a").FailAcquire(errLost) // for who comes too early
		w.answer(second, "a", 2)
		synctest.Wait()
		if n := w.count(balance.EndpointFailed, "a"); n != 1 {
			t.Errorf("it has failed %d times, want once", n)
		}
		a.cancel()
		a.wantFailed()
	})
	bubble(t, "RC1 a failing endpoint that is removed is forgotten", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.add("a")
		w.say(discover.Insert("nowhere"), nil)
		if e := noEndpoints(t, w.refused()); e.Count(balance.BackingOff) != 1 {
			t.Errorf("the refusal says %+v", e)
		}
		w.remove("nowhere")
		if e, ok := errors.AsType[*balance.NoEndpointsError](w.refused()); ok {
			t.Errorf("the refusal still says %+v", e)
		}
	})
	bubble(t, "RC1 a closed endpoint is not asked again, nor waited for", func(t *testing.T) {
		var asked, ended atomic.Int64
		w := newWorldOf(t, &world{dial: func(_ context.Context, key, _ string) (service, error) {
			return acquiring{echo(), func(ctx context.Context) (belfry.Permit, error) {
				if ctx.Err() == nil { // a driver, and an endpoint that does not tell it
					<-ctx.Done()
					ended.Add(1)
					return belfry.Permit{}, ctx.Err()
				}
				if key == "closed" {
					asked.Add(1)
					return belfry.Permit{}, &belfry.Rejection{Err: belfry.ErrClosed}
				}
				return belfry.Permit{}, nil
			}}, nil
		}}, balance.Config{})
		w.add("closed", "a")
		for range 20 {
			permit, err := w.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w.Release(permit)
		}
		synctest.Wait()
		if asked.Load() != 1 || ended.Load() != 1 {
			t.Errorf("asked %d times, %d waits ended, want 1 and 1", asked.Load(), ended.Load())
		}
		w.remove("closed")
		w.wantStates("a:ready")
		if _, err := w.Acquire(t.Context()); err != nil {
			t.Error(err)
		}
		a := w.wait()
		a.wantGranted() // a is still there to be waited for
	})
	bubble(t, "RC1 a closed endpoint that is named again is dialled again", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		dead := w.backend("a")
		w.add("a")
		dead.Close()
		w.wantStates("a:closed")
		w.mu.Lock()
		delete(w.backends, "a")
		w.mu.Unlock()
		w.backend("a").Allow(1)
		w.add("a")
		w.wantStates("a:ready")
		w.do("a", 1)
	})
	bubble(t, "RC2 dialled and not ready: none ready, two listed", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.add("a", "b")
		w.wantStates("a:not ready b:not ready")
		w.wantRefused()
	})
	bubble(t, "RC3 dialled and ready: two ready without any call having been made", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(1)
		w.backend("b").Allow(1)
		w.add("a", "b")
		w.wantStates("a:ready b:ready")
		if a, b := w.backend("a"), w.backend("b"); a.Free() != 1 || b.Free() != 1 || a.Held() != 0 || b.Held() != 0 {
			t.Error("something is reserved although nobody has asked")
		}
	})
	bubble(t, "RC4 ready, taken out, then in error: no error is shown", func(t *testing.T) {
		w := newWorld(t, balance.Config{AllowEmpty: true})
		w.backend("a").Allow(1)
		w.add("a")
		w.wantStates("a:ready")
		w.backend("a").FailAcquire(errLost)
		w.remove("a")
		time.Sleep(time.Minute)
		w.wantStates("")
		if n := w.count(balance.EndpointFailed, "a"); n != 0 {
			t.Errorf("%d failures were reported", n)
		}
	})
	bubble(t, "RC5 not ready, taken out, then in error: no error is shown", func(t *testing.T) {
		w := newWorld(t, balance.Config{AllowEmpty: true})
		w.add("a")
		w.wantStates("a:not ready")
		w.remove("a")
		w.backend("a").FailAcquire(errLost)
		time.Sleep(time.Minute)
		w.wantStates("")
		if n := w.count(balance.EndpointFailed, "a"); n != 0 {
			t.Errorf("%d failures were reported", n)
		}
	})
	bubble(t, "RC6 taken out while it is dialled: the dial is cancelled and no error is shown", func(t *testing.T) {
		var ended atomic.Int64
		w := newWorldOf(t, &world{dial: dialUntilCancelled(&ended)}, balance.Config{AllowEmpty: true})
		w.say(discover.Insert("a"), nil)
		w.wantStates("a:dialling")
		w.remove("a")
		w.wantStates("")
		if n := ended.Load(); n != 1 {
			t.Errorf("%d dials were cancelled, want 1", n)
		}
		if n := w.count(balance.EndpointFailed, "a"); n != 0 {
			t.Errorf("%d failures were reported", n)
		}
	})
	bubble(t, "RC7 a ready endpoint that would fail is not asked before it is chosen", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(1)
		w.add("a")
		w.backend("a").FailAcquire(errLost)
		time.Sleep(time.Minute)
		w.wantStates("a:ready")
		w.wantRefused()
		w.wantStates("a:backing off")
	})
	bubble(t, "RC8 D17 one key twice is one endpoint, gone when it is removed", func(t *testing.T) {
		w := newWorld(t, balance.Config{AllowEmpty: true})
		w.backend("a").Allow(1)
		w.add("a", "a")
		w.wantStates("a:ready")
		if len(w.dials) != 1 {
			t.Errorf("dialled %v", w.dials)
		}
		w.remove("a")
		w.wantStates("")
		w.wantRefused()
		w.add("a")
		w.wantStates("a:ready")
		w.do("a", 1)
	})
	bubble(t, "RC9 D17 a hundred and thirty inserts of one key in a burst leave one endpoint", func(t *testing.T) {
		const n = 130
		cancelled, closed := 0, 0
		w := &world{}
		w.dial = func(ctx context.Context, key, addr string) (service, error) {
			if addr != "129" && len(addr)%2 == 0 { // some dials end when they are cancelled, others succeed all the same
				<-ctx.Done()
				w.mu.Lock()
				defer w.mu.Unlock()
				cancelled++
				return nil, ctx.Err()
			}
			if addr != "129" {
				<-ctx.Done()
			}
			return closing{echo(), func() error {
				w.mu.Lock()
				defer w.mu.Unlock()
				closed++
				return nil
			}}, nil
		}
		newWorldOf(t, w, balance.Config{})
		for i := range n {
			w.say(discover.Change{Key: "key", Addr: strconv.Itoa(i)}, nil)
		}
		w.wantStates("129:ready")
		if cancelled+closed != n-1 || cancelled == 0 || closed == 0 {
			t.Errorf("%d dials were cancelled and %d services closed, want %d together", cancelled, closed, n-1)
		}
	})
}

// TestBalance has the cases of tower's balancer.
func TestBalance(t *testing.T) {
	bubble(t, "BA1 empty", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		if err := w.refused(); !errors.Is(err, belfry.ErrNotReady) || len(noEndpoints(t, err).Endpoints) != 0 {
			t.Errorf("under NoWait: %v", err)
		}
		a := w.wait()
		time.Sleep(5*time.Second - 1)
		a.wantWaiting()
		time.Sleep(time.Nanosecond)
		err := a.wantError()
		if _ = noEndpoints(t, err); !errors.Is(err, belfry.ErrNotReady) || errors.Is(err, belfry.ErrClosed) {
			t.Errorf("after MaxWait: %v", err)
		}
	})
	bubble(t, "BA2 a single endpoint", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.add("a")
		a := w.wait()
		a.wantWaiting()
		w.backend("a").Allow(1)
		a.wantGranted()
		w.wantStates("a:ready")
		w.answer(a.permit, "a", 1)
		w.backend("a").Allow(1)
		w.do("a", 2)

		a = w.wait()
		w.backend("a").FailAcquire(errLost)
		a.wantWaiting()
		w.wantStates("a:backing off")
		if got := w.endpoint("a").Err; !errors.Is(got, errLost) {
			t.Errorf("its error is %v", got)
		}
		if e := noEndpoints(t, w.refused()); len(e.Endpoints) != 1 || !errors.Is(e.Endpoints[0].Err, errLost) {
			t.Errorf("the refusal says %+v", e)
		}
		w.backend("a").Allow(1)
		time.Sleep(100 * time.Millisecond) // MinBackoff
		a.wantGranted()
		w.answer(a.permit, "a", 3)
	})
	bubble(t, "BA3 two endpoints with equal load", func(t *testing.T) {
		w := newWorld(t, balance.Config{Load: load.Constant(nil)})
		w.add("a", "b")
		w.wantRefused()
		w.wantStates("a:not ready b:not ready")
		w.backend("a").Allow(1)
		w.do("a", 1)
		w.backend("b").Allow(1)
		w.do("b", 2)
		w.backend("a").Allow(1)
		w.backend("b").Allow(1)
		first, at := w.reserve()
		second, at2 := w.reserve()
		if at == at2 {
			t.Fatalf("%s was chosen twice", at)
		}
		w.wantRefused()
		w.answer(first, at, 3)
		w.answer(second, at2, 4)

		w.backend("a").FailAcquire(errLost)
		w.wantRefused()
		w.wantStates("a:backing off b:not ready")
		w.backend("b").Allow(1)
		w.do("b", 5)
	})
}

func TestSet(t *testing.T) {
	bubble(t, "X8 S14 a moved endpoint serves from its old address until it is ready at the new one", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("old").Allow(10)
		w.backend("new")
		w.say(discover.Change{Key: "key", Addr: "old"}, nil)
		w.wantStates("old:ready")
		before, _ := w.reserve()
		w.say(discover.Change{Key: "key", Addr: "new"}, nil)
		w.wantStates("old:ready new:not ready")
		w.do("old", 1)
		time.Sleep(time.Hour)
		w.do("old", 2)
		w.backend("new").Allow(5)
		w.wantStates("old:draining new:ready")
		w.do("new", 3)
		w.answer(before, "old", 4)
		w.wantStates("new:ready")
	})
	bubble(t, "X8 a move that cannot be dialled changes nothing, and can be taken back", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("old").Allow(10)
		w.say(discover.Change{Key: "key", Addr: "old"}, nil)
		w.wantStates("old:ready")
		w.say(discover.Change{Key: "key", Addr: "nowhere"}, nil)
		time.Sleep(time.Hour)
		w.wantStates("old:ready nowhere:backing off")
		w.do("old", 1)
		w.backend("new")
		w.say(discover.Change{Key: "key", Addr: "new"}, nil)
		w.wantStates("old:ready new:not ready")
		w.backend("new").Allow(1)
		w.wantStates("new:ready")
		w.say(discover.Change{Key: "other", Addr: "other"}, nil)
		w.remove("key")
		if got := w.states(); got != "other:backing off" {
			t.Errorf("after the key is removed: %s", got)
		}
	})
	bubble(t, "X8 removing the key takes both addresses", func(t *testing.T) {
		w := newWorld(t, balance.Config{AllowEmpty: true})
		w.backend("old").Allow(10)
		w.backend("new")
		w.say(discover.Change{Key: "key", Addr: "old"}, nil)
		w.wantStates("old:ready")
		w.say(discover.Change{Key: "key", Addr: "new"}, nil)
		w.wantStates("old:ready new:not ready")
		w.remove("key")
		w.wantStates("")
		w.wantRefused()
	})
	bubble(t, "X9 a removed endpoint finishes its calls, and is closed after the last", func(t *testing.T) {
		var closed []string
		w := &world{}
		newWorldOf(t, w, balance.Config{})
		w.backend("a").Allow(3)
		w.services["a"] = closing{w.services["a"], func() error { closed = append(closed, "a"); return nil }}
		w.add("a", "b")
		running, _ := w.reserve()
		reserved, _ := w.reserve()
		unspent, _ := w.reserve()
		done := w.call(running, 1)
		w.remove("a")
		w.wantStates("a:draining b:not ready")
		if s := w.endpoint("a"); s.InFlight != 1 || s.Reserved != 2 {
			t.Errorf("%d in flight and %d reserved, want 1 and 2", s.InFlight, s.Reserved)
		}
		w.wantRefused()
		w.backend("a").Expect(1).Answer(-1)
		wantEnd(t, done, nil)
		w.answer(reserved, "a", 2)
		w.wantStates("a:draining b:not ready")
		if len(closed) > 0 {
			t.Fatal("closed with a permit out")
		}
		w.Release(unspent)
		w.wantStates("b:not ready")
		if len(closed) != 1 {
			t.Fatalf("closed %d times, want once", len(closed))
		}
		if n := w.count(balance.ServiceClosed, "a"); n != 1 {
			t.Errorf("%d events of it, want 1", n)
		}
	})
	for _, removed := range []string{"a", "b", "c"} {
		bubble(t, "X7 D10 what was chosen stays chosen when an endpoint is removed: "+removed, func(t *testing.T) {
			cost := map[string]float64{"a": 0, "b": 1, "c": 10}
			w := newWorld(t, balance.Config{Load: load.Constant(func(key string) float64 { return cost[key] })})
			for addr := range cost {
				w.backend(addr).Allow(1)
			}
			w.add("a", "b", "c")
			permit, at := w.reserve()
			for at != "b" {
				w.Release(permit)
				permit, at = w.reserve()
			}
			w.remove(removed)
			w.answer(permit, "b", 7)
		})
	}
	bubble(t, "S13 a burst of changes is absorbed before the next pick", func(t *testing.T) {
		w := newWorld(t, balance.Config{AllowEmpty: true})
		for i := range 100 {
			w.backend(strconv.Itoa(i)).Allow(1)
			w.say(discover.Insert(strconv.Itoa(i)), nil)
		}
		for i := range 100 {
			if i != 42 {
				w.say(discover.Remove(strconv.Itoa(i)), nil)
			}
		}
		w.wantStates("42:ready")
		w.do("42", 1)
	})
	t.Run("D13 picks go on during an endless source", func(t *testing.T) {
		over := make(chan struct{})
		source := func(yield func(discover.Change, error) bool) {
			defer close(over)
			ok := yield(discover.Insert("a"), nil)
			for i := 0; ok; i++ {
				ok = yield(discover.Change{Key: "b", Addr: strconv.Itoa(i), Remove: i%2 == 1}, nil)
			}
		}
		b, err := balance.New(source, func(context.Context, string, string) (service, error) { return echo(), nil }, balance.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			if res, err := belfry.Do(t.Context(), b, i); res != i || err != nil {
				t.Fatalf("call %d: %d, %v", i, res, err)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		<-over
	})
	bubble(t, "D14 an error of discovery changes nothing", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(2)
		w.add("a")
		errDNS := errors.New("dns")
		w.say(discover.Change{}, errDNS)
		w.do("a", 1)
		if got := w.Stats().Discovery; !errors.Is(got, errDNS) {
			t.Errorf("Stats say %v, want %v", got, errDNS)
		}
		if n := w.count(balance.DiscoveryFailed, ""); n != 1 {
			t.Errorf("%d events, want 1", n)
		}
		w.say(discover.Change{}, nil)
		synctest.Wait()
		if got := w.Stats().Discovery; got == nil || errors.Is(got, errDNS) {
			t.Errorf("a change about nothing: Stats say %v", got)
		}
		w.add("b")
		if got := w.Stats().Discovery; got != nil {
			t.Errorf("after a change Stats say %v", got)
		}
		w.say(discover.Change{}, errDNS)
		w.remove("b")
		if got := w.Stats().Discovery; got != nil {
			t.Errorf("after another change Stats say %v", got)
		}
	})
	bubble(t, "a set that turns empty is kept until another endpoint is up", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(10)
		w.add("a", "b")
		w.remove("b", "a")
		w.wantStates("a:ready")
		w.do("a", 1)
		w.say(discover.Insert("nowhere"), nil)
		w.wantStates("a:ready nowhere:backing off")
		w.do("a", 2)
		w.remove("nowhere")
		w.wantStates("a:ready")
		w.add("c")
		w.wantStates("c:not ready")
	})
	bubble(t, "an endpoint is kept also while it is dialled", func(t *testing.T) {
		w := newWorldOf(t, &world{dial: func(ctx context.Context, _, _ string) (service, error) {
			time.Sleep(time.Second)
			return echo(), ctx.Err()
		}}, balance.Config{})
		w.say(discover.Insert("a"), nil)
		w.remove("a")
		w.wantStates("a:dialling")
		time.Sleep(time.Second)
		w.wantStates("a:ready")
	})
	bubble(t, "a kept endpoint that is removed once more is gone, once", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(10)
		w.add("a")
		w.remove("a")
		w.say(discover.Insert("c"), nil)
		w.wantStates("a:ready c:backing off")
		w.remove("a")
		w.wantStates("c:backing off")
		w.backend("c").Allow(1)
		time.Sleep(time.Second)
		w.wantStates("c:ready")
		a, b := w.wait(), w.wait() // the second has an endpoint to wait for
		a.wantGranted()
		b.wantWaiting()
		w.Release(a.permit)
		b.wantGranted()
		w.Release(b.permit)
	})
	bubble(t, "a kept endpoint that is named again stays", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(10)
		w.add("a")
		w.remove("a")
		w.add("a", "c")
		w.wantStates("a:ready c:not ready")
		if len(w.dials) != 2 {
			t.Errorf("dialled %v", w.dials)
		}
	})
	bubble(t, "D12 endpoints and discovery are driven while nobody calls", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(1)
		w.add("a", "b")
		w.wantStates("a:ready b:not ready")
		time.Sleep(time.Minute)
		w.backend("b").Allow(1)
		w.wantStates("a:ready b:ready")
		w.wantStates("a:ready b:ready")
		w.say(discover.Insert("late"), nil) // nobody there yet
		time.Sleep(time.Minute)
		w.backend("late").Allow(1)
		time.Sleep(10 * time.Second) // MaxBackoff
		w.wantStates("a:ready b:ready late:ready")
	})
}
