package balance_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// A request is as much work as it says.
var costly = belfry.Semantics[int, int]{Cost: func(req int) int { return req }}

// A shop has two endpoints that take a call from calls and then wait for done.
type shop struct {
	*balancer
	calls chan string
	done  map[string]chan struct{}
}

func newShop(t *testing.T, sem belfry.Semantics[int, int]) *shop {
	t.Helper()
	s := &shop{calls: make(chan string, 100), done: map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}}
	b, err := balance.New(discover.List("a", "b"), func(_ context.Context, _, addr string) (service, error) {
		return belfry.Of(func(_ context.Context, req int) (int, error) {
			s.calls <- addr
			<-s.done[addr]
			if req == 13 {
				panic("unlucky")
			}
			return 0, nil
		}), nil
	}, balance.Config{Load: load.Pending{}}, sem)
	if err != nil {
		t.Fatal(err)
	}
	s.balancer = b
	synctest.Wait()
	t.Cleanup(func() { b.Close() })
	return s
}

// start sends req and returns where it went.
func (s *shop) start(req int) string {
	go func() {
		defer func() { _ = recover() }()
		_, _ = belfry.Do(context.Background(), s.balancer, req)
	}()
	synctest.Wait()
	return <-s.calls
}

func (s *shop) work() (work int) {
	for _, ep := range s.Stats().Endpoints {
		work += ep.Work
	}
	return work
}

func TestCost(t *testing.T) {
	other := map[string]string{"a": "b", "b": "a"}
	bubble(t, "a costly call counts for many", func(t *testing.T) {
		s := newShop(t, costly)
		heavy := s.start(10)
		for i := range 9 {
			if at := s.start(1); at != other[heavy] {
				t.Errorf("light call %d went to %s, where a call of 10 is", i, at)
			}
		}
		if got := s.work(); got != 19 {
			t.Errorf("%d units are in flight, want 19", got)
		}
		close(s.done["a"])
		close(s.done["b"])
		synctest.Wait()
		if got := s.work(); got != 0 {
			t.Errorf("%d units are left", got)
		}
	})
	bubble(t, "without a function all calls are one", func(t *testing.T) {
		s := newShop(t, belfry.Semantics[int, int]{})
		first := s.start(10)
		if second := s.start(1); second != other[first] {
			t.Errorf("both went to %s", first)
		}
		if got := s.work(); got != 2 {
			t.Errorf("%d units are in flight, want 2", got)
		}
		close(s.done["a"])
		close(s.done["b"])
	})
	bubble(t, "a call that panics gives its work back, and so does one that says it is none", func(t *testing.T) {
		s := newShop(t, costly)
		s.start(13)
		s.start(-5)
		if got := s.work(); got != 14 {
			t.Errorf("%d units are in flight, want 14", got)
		}
		close(s.done["a"])
		close(s.done["b"])
		synctest.Wait()
		if got := s.work(); got != 0 {
			t.Errorf("%d units are left", got)
		}
	})
	bubble(t, "a streamed response holds its work until it is over", func(t *testing.T) {
		sem := costly
		var end func()
		sem.Until = func(res int, done func()) int { end = done; return res }
		s := newShop(t, sem)
		close(s.done["a"])
		close(s.done["b"])
		s.start(7)
		synctest.Wait()
		if got := s.work(); got != 7 {
			t.Errorf("%d units are in flight, want 7", got)
		}
		end()
		if got := s.work(); got != 0 {
			t.Errorf("%d units are left", got)
		}
	})
}
