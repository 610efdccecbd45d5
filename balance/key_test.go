package balance_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/internal/attempt"
)

// where returns which address gets a call under ctx.
func (s *street) where(ctx context.Context) string {
	s.t.Helper()
	got := s.calls(1, func() context.Context { return ctx })
	for addr := range got {
		return addr
	}
	s.t.Fatal("nobody got the call")
	return ""
}

func keyed(i int) context.Context {
	return balance.WithKey(context.Background(), fmt.Sprint("user ", i))
}

func TestKeys(t *testing.T) {
	five := []discover.Change{at("a"), at("b"), at("c"), at("d"), at("e")}
	places := func(s *street) (all []string) {
		for i := range 300 {
			all = append(all, s.where(keyed(i)))
		}
		return all
	}
	bubble(t, "a key stays, and moves only when it has to", func(t *testing.T) {
		s := newStreet(t, balance.Config{ByKey: true}, five...)
		before := places(s)
		counts := map[string]int{}
		for i, addr := range places(s) {
			counts[addr]++
			if addr != before[i] {
				t.Fatalf("key %d went to %s, then to %s", i, before[i], addr)
			}
		}
		for _, c := range five {
			if n := counts[c.Addr]; n < 35 || n > 90 {
				t.Errorf("of 300 keys %s has %d, want about 60", c.Addr, n)
			}
		}
		s.say(discover.Remove("c"))
		after := places(s)
		for i := range before {
			if before[i] != "c" && after[i] != before[i] {
				t.Errorf("key %d moved from %s to %s when c went", i, before[i], after[i])
			}
		}
		s.say(at("c"))
		for i, addr := range places(s) {
			if addr != before[i] {
				t.Errorf("key %d is at %s when c is back, was at %s", i, addr, before[i])
			}
		}
		s.at("a").refuses.Store(true)
		for i, addr := range places(s) {
			if before[i] != "a" && addr != before[i] || addr == "a" {
				t.Errorf("key %d moved from %s to %s when a had no room", i, before[i], addr)
			}
		}
	})
	bubble(t, "no endpoint gets more than 1.25 times the mean for its keys", func(t *testing.T) {
		s := newStreet(t, balance.Config{ByKey: true}, five...)
		var permits []belfry.Permit
		for range 100 {
			p, err := s.Acquire(keyed(1)) // all of one key
			if err != nil {
				t.Fatal(err)
			}
			permits = append(permits, p)
		}
		for _, ep := range s.Stats().Endpoints {
			if ep.Reserved > 25 {
				t.Errorf("%s has %d of 100", ep.Key, ep.Reserved)
			}
		}
		for _, p := range permits {
			s.Release(p)
		}
	})
	bubble(t, "by weight, and within a priority", func(t *testing.T) {
		s := newStreet(t, balance.Config{ByKey: true}, at("a", weighing(9)), at("b"), at("spare", ranking(1)))
		n := 0
		for _, addr := range places(s) {
			if addr == "a" {
				n++
			} else if addr != "b" {
				t.Fatalf("a key is at %s", addr)
			}
		}
		if n < 245 || n > 290 {
			t.Errorf("of 300 keys a has %d, want about 270", n)
		}
	})
	bubble(t, "an attempt goes elsewhere", func(t *testing.T) {
		s := newStreet(t, balance.Config{ByKey: true}, five...)
		for i := range 50 {
			ctx := &attempt.Context{Context: keyed(i)}
			first, second := s.where(ctx), s.where(ctx)
			if again := s.where(keyed(i)); first == second || again != first {
				t.Errorf("key %d: %s, then %s, then %s", i, first, second, again)
			}
		}
	})
	bubble(t, "the key outlives NoWait, and means nothing without ByKey", func(t *testing.T) {
		s := newStreet(t, balance.Config{ByKey: true}, five...)
		for i := range 50 {
			first := s.where(keyed(i))
			before := s.at(first).calls.Load()
			if _, err := belfry.TryDo(keyed(i), s.balancer, 1); err != nil || s.at(first).calls.Load() == before {
				t.Errorf("key %d went to %s, then elsewhere: %v", i, first, err)
			}
		}
		s = newStreet(t, balance.Config{}, five...)
		seen := map[string]bool{}
		for range 100 {
			seen[s.where(keyed(1))] = true
		}
		if len(seen) != 5 {
			t.Errorf("calls went to %v", seen)
		}
	})
}

// All requests of a user go to the same replica, which has their data in its cache.
func ExampleWithKey() {
	dial := func(_ context.Context, _, addr string) (belfry.Service[string, string], error) {
		return belfry.Of(func(context.Context, string) (string, error) { return addr, nil }), nil
	}
	replicas, err := balance.New(discover.List("a:80", "b:80", "c:80"), dial, balance.Config{ByKey: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replicas.Close()
	for s := replicas.Stats(); !allReady(s); s = replicas.Stats() {
	}
	seen := map[string]bool{}
	for range 100 {
		addr, _ := belfry.Do(balance.WithKey(context.Background(), "alice"), replicas, "hello")
		seen[addr] = true
	}
	fmt.Println(len(seen))
	// Output: 1
}
