package balance_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

func TestClose(t *testing.T) {
	bubble(t, "refuses all, waiters too, and lets calls in flight finish", func(t *testing.T) {
		closed := false
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(1)
		w.services["a"] = closing{w.services["a"], func() error { closed = true; return nil }}
		w.add("a", "b")
		permit, _ := w.reserve()
		done := w.call(permit, 1)
		a := w.wait()
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := a.wantError(); !errors.Is(err, belfry.ErrClosed) || !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("the waiter got %v", err)
		}
		for _, ctx := range []context.Context{t.Context(), belfry.NoWait(t.Context())} {
			if _, err := w.Acquire(ctx); !errors.Is(err, belfry.ErrClosed) {
				t.Errorf("Acquire: %v", err)
			}
		}
		w.wantStates("a:draining")
		if closed {
			t.Fatal("closed with a call in flight")
		}
		w.backend("a").Expect(1).Answer(-1)
		wantEnd(t, done, nil)
		w.wantStates("")
		if !closed {
			t.Error("the service was not closed after its last call")
		}
		w.Close() // again
	})
	bubble(t, "refuses those who wait for discovery", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		a := w.wait()
		w.Close()
		if err := a.wantError(); !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("the waiter got %v", err)
		}
	})
	bubble(t, "ends pauses", func(t *testing.T) {
		w := newWorld(t, balance.Config{MinBackoff: time.Hour})
		w.say(discover.Insert("nowhere"), nil)
		w.wantStates("nowhere:backing off")
		begun := time.Now()
		w.Close()
		if took := time.Since(begun); took > 0 {
			t.Errorf("Close took %v", took)
		}
	})
	bubble(t, "ends dials and waits for them", func(t *testing.T) {
		var ended atomic.Int64
		w := newWorldOf(t, &world{dial: dialUntilCancelled(&ended)}, balance.Config{})
		w.say(discover.Insert("a"), nil)
		w.say(discover.Insert("b"), nil)
		synctest.Wait()
		w.Close()
		if n := ended.Load(); n != 2 {
			t.Errorf("%d dials have ended, want 2", n)
		}
	})
	bubble(t, "returns what closing the services failed with", func(t *testing.T) {
		b, err := balance.New(discover.List("a", "b", "c"), func(_ context.Context, key, _ string) (service, error) {
			return closing{echo(), func() error {
				switch key {
				case "a":
					return errLost
				case "b":
					panic("planned")
				}
				return nil
			}}, nil
		}, balance.Config{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		err = b.Close()
		if p, ok := errors.AsType[*balance.PanicError](err); !errors.Is(err, errLost) || !ok || p.Value != "planned" {
			t.Errorf("Close: %v", err)
		}
	})
	bubble(t, "twice at once, both when it is done", func(t *testing.T) {
		w := newWorldOf(t, &world{dial: func(ctx context.Context, _, _ string) (service, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil, ctx.Err()
		}}, balance.Config{})
		w.say(discover.Insert("a"), nil)
		synctest.Wait()
		var returned atomic.Int32
		for range 2 {
			go func() {
				w.Close()
				returned.Add(1)
			}()
		}
		time.Sleep(time.Second - 1)
		if n := returned.Load(); n != 0 {
			t.Fatalf("%d returned while a dial was going on", n)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := returned.Load(); n != 2 {
			t.Fatalf("%d returned", n)
		}
	})
	bubble(t, "does not wait for a source that waits for news, and tells it at the next", func(t *testing.T) {
		news, over := make(chan string), false
		b, err := balance.New(func(yield func(discover.Change, error) bool) {
			for addr := range news {
				if !yield(discover.Insert(addr), nil) {
					over = true
					return
				}
			}
		}, func(context.Context, string, string) (service, error) { return echo(), nil }, balance.Config{})
		if err != nil {
			t.Fatal(err)
		}
		news <- "a"
		synctest.Wait()
		b.Close()
		if over {
			t.Fatal("the source was told out of turn")
		}
		news <- "b"
		synctest.Wait()
		if !over {
			t.Error("the source was not told to stop")
		}
		if n := len(b.Stats().Endpoints); n != 0 {
			t.Errorf("%d endpoints after Close", n)
		}
	})
}

func TestGoroutines(t *testing.T) {
	bubble(t, "a panic in dial, Acquire or Release of an endpoint is its error", func(t *testing.T) {
		dials, acquires, releases := 0, 0, 0
		first := func(n *int, where string) {
			if *n++; *n == 1 {
				panic(where)
			}
		}
		w := newWorldOf(t, &world{dial: func(context.Context, string, string) (service, error) {
			first(&dials, "in dial")
			return releasing{acquiring{echo(), func(context.Context) (belfry.Permit, error) {
				first(&acquires, "in Acquire")
				return belfry.Permit{}, nil
			}}, func() { first(&releases, "in Release") }}, nil
		}}, balance.Config{})
		w.say(discover.Insert("a"), nil)
		time.Sleep(time.Second)
		w.wantStates("a:ready")
		var panics []any
		for _, e := range w.events {
			if p, ok := errors.AsType[*balance.PanicError](e.Err); ok {
				panics = append(panics, p.Value)
			}
		}
		if want := []any{"in dial", "in Acquire", "in Release"}; !slices.Equal(panics, want) {
			t.Errorf("failures were %v, want %v", panics, want)
		}
		if got := w.endpoint("a"); got.Err != nil || got.Reserved != 0 {
			t.Errorf("%+v", got)
		}
	})
	bubble(t, "a Goexit in dial or Acquire is no success, and does not end the trying", func(t *testing.T) {
		dials, acquires := 0, 0
		w := newWorldOf(t, &world{dial: func(context.Context, string, string) (service, error) {
			if dials++; dials == 1 {
				exit()
			}
			return acquiring{echo(), func(context.Context) (belfry.Permit, error) {
				if acquires++; acquires == 1 {
					exit()
				}
				return belfry.Permit{}, nil
			}}, nil
		}}, balance.Config{})
		w.say(discover.Insert("a"), nil)
		w.wantStates("a:backing off")
		a := w.wait()
		time.Sleep(time.Second)
		a.wantGranted()
		w.Release(a.permit)
		if dials != 2 || acquires != 2 {
			t.Errorf("%d dials and %d Acquires, want 2 and 2", dials, acquires)
		}
	})
	bubble(t, "a panic in Acquire on the request path is the caller's, and leaves nothing", func(t *testing.T) {
		asked := 0
		w := newWorldOf(t, &world{dial: func(context.Context, string, string) (service, error) {
			return acquiring{echo(), func(context.Context) (belfry.Permit, error) {
				if asked++; asked == 2 {
					panic("planned")
				}
				return belfry.Permit{}, nil
			}}, nil
		}}, balance.Config{})
		w.add("a")
		func() {
			defer func() {
				if recover() != "planned" {
					t.Error("no panic")
				}
			}()
			_, _ = w.Acquire(t.Context())
		}()
		if got := w.endpoint("a"); got.Reserved != 0 {
			t.Errorf("%d reserved", got.Reserved)
		}
	})
	bubble(t, "a dial that returns nothing is a failure", func(t *testing.T) {
		w := newWorldOf(t, &world{dial: func(context.Context, string, string) (service, error) { return nil, nil }}, balance.Config{})
		w.say(discover.Insert("a"), nil)
		w.wantStates("a:backing off")
	})
	bubble(t, "a panic in the metric or in the hook harms nobody", func(t *testing.T) {
		joined, closed := 0, 0
		b, err := balance.New(discover.List("a"), func(context.Context, string, string) (service, error) {
			return closing{echo(), func() error { closed++; return nil }}, nil
		}, balance.Config{
			Load: load.Constant(func(string) float64 {
				if joined++; joined == 1 {
					panic("in the metric")
				}
				return 0
			}),
			OnEvent: func(balance.Event) { panic("in the hook") },
		})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := belfry.Do(t.Context(), b, 1); res != 1 || err != nil {
			t.Errorf("%d, %v", res, err)
		}
		if closed != 1 {
			t.Errorf("the service that could not be measured was closed %d times", closed)
		}
		b.Close()
	})
	bubble(t, "an endpoint that asks for a pause gets it", func(t *testing.T) {
		var asked []time.Duration
		begun := time.Now()
		w := newWorldOf(t, &world{dial: func(context.Context, string, string) (service, error) {
			return acquiring{echo(), func(context.Context) (belfry.Permit, error) {
				asked = append(asked, time.Since(begun))
				if len(asked) < 3 {
					return belfry.Permit{}, &belfry.Rejection{Reason: "later", RetryAfter: time.Minute, Err: errLost}
				}
				return belfry.Permit{}, nil
			}}, nil
		}}, balance.Config{})
		w.add("a")
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(asked) != 3 || asked[1] < time.Minute || asked[2] < 2*time.Minute || asked[2] > 2*time.Minute+time.Second {
			t.Errorf("asked after %v", asked)
		}
	})
}

// releasing is a service with another Release.
type releasing struct {
	service
	release func()
}

func (r releasing) Release(belfry.Permit) { r.release() }

func TestStats(t *testing.T) {
	bubble(t, "D64 what there is to see", func(t *testing.T) {
		w := newWorld(t, balance.Config{Load: load.Expected{}})
		w.backend("a").Allow(10)
		w.add("a", "b")
		w.backend("c").Close()
		w.add("c")
		w.say(discover.Insert("nowhere"), nil)
		w.wantStates("a:ready b:not ready c:closed nowhere:backing off")

		reserved, _ := w.reserve()
		flying, _ := w.reserve()
		done := w.call(flying, 1)
		got := w.endpoint("a")
		if got.Reserved != 1 || got.InFlight != 1 || got.Cost <= 0 || got.Latency <= 0 {
			t.Errorf("with one reserved and one in flight: %+v", got)
		}
		time.Sleep(20 * time.Millisecond)
		w.backend("a").Expect(1).Answer(-1)
		wantEnd(t, done, nil)
		done = w.call(reserved, 2)
		w.backend("a").Expect(2).Fail(errLost)
		wantEnd(t, done, errLost)
		got = w.endpoint("a")
		if got.Successes != 1 || got.Failures != 1 || got.Ignored != 0 || got.InFlight != 0 || got.Reserved != 0 {
			t.Errorf("after a success and a failure: %+v", got)
		}
		if got.Latency != 20*time.Millisecond || !errors.Is(got.Failure, errLost) || got.Err != nil {
			t.Errorf("after a success and a failure: %+v", got)
		}
		if got := w.endpoint("nowhere"); got.Cost != 0 || got.Latency != 0 || got.Err == nil {
			t.Errorf("what was never dialled: %+v", got)
		}
		for kind, addr := range map[balance.EventKind]string{
			balance.EndpointAdded: "a", balance.EndpointDialled: "b", balance.EndpointReady: "a",
			balance.EndpointClosed: "c", balance.EndpointFailed: "nowhere",
		} {
			if n := w.count(kind, addr); n != 1 && kind != balance.EndpointFailed || n == 0 {
				t.Errorf("%d events %q about %s, want 1", n, kind, addr)
			}
		}
		w.remove("a")
		if n := w.count(balance.EndpointRemoved, "a"); n != 1 {
			t.Errorf("%d events of the removal, want 1", n)
		}
	})
	t.Run("names", func(t *testing.T) {
		seen := map[string]bool{}
		for s := balance.Dialling; s <= balance.Draining; s++ {
			seen[s.String()] = true
		}
		for k := balance.EndpointAdded; k <= balance.DiscoveryFailed; k++ {
			seen[k.String()] = true
		}
		if want := int(balance.Draining) + int(balance.DiscoveryFailed) + 2; len(seen) != want || seen["unknown"] {
			t.Errorf("names %v, want %d", seen, want)
		}
		if balance.State(99).String() != "unknown" || balance.EventKind(99).String() != "unknown" {
			t.Error("a name for what is not there")
		}
	})
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  balance.Config
		want string
	}{
		{balance.Config{}, ""},
		{balance.Config{MaxWait: time.Nanosecond, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond, AllowEmpty: true}, ""},
		{balance.Config{MinBackoff: time.Minute}, ""},
		{balance.Config{MaxWait: -1}, "balance: max wait must not be negative, got -1ns"},
		{balance.Config{MinBackoff: time.Microsecond}, "balance: back-off: min must be at least 1ms, got 1µs"},
		{balance.Config{MinBackoff: time.Second, MaxBackoff: time.Millisecond}, "balance: back-off: max must be at least min (1s), got 1ms"},
		{balance.Config{MaxBackoff: -1}, "balance: back-off: max must be at least min (100ms), got -1ns"},
		{balance.Config{Load: load.PeakEWMA{Decay: -1}}, "load: decay must not be negative, got -1ns"},
	} {
		got := ""
		if err := c.cfg.Validate(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.cfg, got, c.want)
		}
		b, err := balance.New(discover.List(), func(context.Context, string, string) (service, error) { return echo(), nil }, c.cfg)
		if (err == nil) != (c.want == "") {
			t.Errorf("New: %v", err)
		}
		if err == nil {
			b.Close()
		}
	}
	if _, err := balance.New[int, int](nil, nil, balance.Config{}); err == nil {
		t.Error("New takes nil for a source")
	}
}

// TestRand: an injected source is used by many goroutines, one at a time.
func TestRand(t *testing.T) {
	b := ready(t, 4, balance.Config{Load: load.Constant(nil), Rand: rand.NewPCG(1, math.MaxUint64)}, echo)
	const goroutines, calls = 8, 500
	done := make(chan error)
	for range goroutines {
		go func() {
			var err error
			for range calls {
				if _, e := belfry.Do(t.Context(), b, 1); e != nil {
					err = e
				}
			}
			done <- err
		}()
	}
	for range goroutines {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for _, ep := range b.Stats().Endpoints {
		if ep.Successes < goroutines*calls/8 {
			t.Errorf("%s had %d calls of %d", ep.Key, ep.Successes, goroutines*calls)
		}
	}
}
