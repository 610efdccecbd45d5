package balance_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// newFlicker is a world of a, which takes 200 ms or fails at once, and of b and c, which take 10 ms.
func newFlicker(t *testing.T, cfg balance.Config, fails bool) (w *world, calls map[string]int) {
	const seed = 11
	t.Logf("seed %d", seed)
	cfg.Rand, cfg.AllowEmpty = rand.NewPCG(seed, seed), true
	calls = map[string]int{}
	w = &world{dial: func(_ context.Context, _, addr string) (service, error) {
		return belfry.Of(func(_ context.Context, n int) (int, error) {
			calls[addr]++
			switch {
			case addr != "a":
				time.Sleep(10 * time.Millisecond)
			case fails:
				return 0, errors.New("ill")
			default:
				time.Sleep(200 * time.Millisecond)
			}
			return n, nil
		}), nil
	}}
	newWorldOf(t, w, cfg)
	w.add("a", "b", "c")
	w.sends(300)
	return w, calls
}

// flickers lets a go for so long and come back, again and again, and returns how many calls it got.
func (w *world) flickers(calls map[string]int, away time.Duration) int {
	before := calls["a"]
	for range 20 {
		w.remove("a")
		time.Sleep(away)
		w.say(discover.Insert("a"), nil)
		synctest.Wait()
		w.sends(50)
	}
	return calls["a"] - before
}

func TestRememberedEndpoint(t *testing.T) {
	for name, metric := range map[string]load.Metric{
		"expected": nil, "reported": load.Reported{}, "probing": load.Probing{}, "peak ewma": load.PeakEWMA{},
	} {
		for what, fails := range map[string]bool{"slow": false, "failing": true} {
			bubble(t, name+": one that is "+what+" is known when it is back", func(t *testing.T) {
				w, calls := newFlicker(t, balance.Config{Load: metric}, fails)
				known := w.flickers(calls, time.Second)
				w, calls = newFlicker(t, balance.Config{Load: metric, Remember: -1}, fails)
				unknown := w.flickers(calls, time.Second)
				if known > unknown/2 {
					t.Errorf("of 1000 calls it got %d, and unremembered %d", known, unknown)
				}
			})
		}
	}
}

func TestRememberIsBounded(t *testing.T) {
	bubble(t, "in time", func(t *testing.T) {
		w, _ := newFlicker(t, balance.Config{Load: load.Expected{Decay: time.Hour}}, false)
		for _, c := range []struct {
			away      time.Duration
			low, high time.Duration
		}{{59 * time.Second, 11 * time.Millisecond, time.Second}, {time.Minute, 0, 11 * time.Millisecond}} {
			w.remove("a")
			if n := w.Stats().Remembered; n != 1 {
				t.Fatalf("%d are remembered", n)
			}
			time.Sleep(c.away)
			w.name("a")
			if l := w.endpoint("a").Latency; l < c.low || l > c.high || w.Stats().Remembered != 0 {
				t.Errorf("away for %v: it is taken to need %v", c.away, l)
			}
		}
	})
	bubble(t, "in number", func(t *testing.T) {
		w := newWorldOf(t, &world{dial: func(context.Context, string, string) (service, error) {
			return belfry.Of(func(_ context.Context, n int) (int, error) { return n, nil }), nil
		}}, balance.Config{AllowEmpty: true})
		for i := range 1100 {
			w.name(fmt.Sprint(i))
			w.remove(fmt.Sprint(i))
		}
		if n := w.Stats().Remembered; n != 1024 {
			t.Errorf("%d are remembered", n)
		}
		w.name("0", "1099")
		if n := w.Stats().Remembered; n != 1023 {
			t.Errorf("%d are remembered when the first and the last are back", n)
		}
	})
	bubble(t, "by key and address", func(t *testing.T) {
		w, _ := newFlicker(t, balance.Config{}, false)
		w.say(discover.Change{Key: "a", Addr: "d"}, nil)
		synctest.Wait()
		if l := w.endpoint("d").Latency; l > 11*time.Millisecond {
			t.Errorf("another address is taken to need %v", l)
		}
		w.say(discover.Change{Key: "a", Addr: "a"}, nil)
		synctest.Wait()
		if l := w.endpoint("a").Latency; l < 15*time.Millisecond {
			t.Errorf("the address of before is taken to need %v", l)
		}
	})
	bubble(t, "to metrics that measure", func(t *testing.T) {
		w, _ := newFlicker(t, balance.Config{Load: load.Pending{}}, false)
		w.remove("a", "b")
		if n := w.Stats().Remembered; n != 0 {
			t.Errorf("%d counts are remembered", n)
		}
	})
}

// What ends while the endpoint is away is known when it is back, and harms nobody.
func TestRememberedEndpointWithCallsInFlight(t *testing.T) {
	bubble(t, "one call ends while it is away, one when it is back", func(t *testing.T) {
		w := newWorld(t, balance.Config{AllowEmpty: true})
		w.add("a")
		w.backend("a").Allow(3) // its driver asks for one, too
		first, _ := w.reserve()
		second, _ := w.reserve()
		one, two := w.call(first, 1), w.call(second, 2)
		w.remove("a")
		time.Sleep(time.Second)
		w.backend("a").Expect(1).Answer(-1)
		wantEnd(t, one, nil)
		w.add("a")
		w.backend("a").Expect(2).Answer(-2)
		wantEnd(t, two, nil)
		synctest.Wait()
		if got := w.Stats(); len(got.Endpoints) != 1 || got.Endpoints[0].Latency < 900*time.Millisecond {
			t.Errorf("it does not know of calls that took a second: %+v", got.Endpoints)
		}
	})
}

// name inserts endpoints of a world with a dialler of its own.
func (w *world) name(addrs ...string) {
	w.t.Helper()
	for _, addr := range addrs {
		w.say(discover.Insert(addr), nil)
	}
	synctest.Wait()
}
