package pick_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/belfry-go/belfry/internal/pick"
)

func newEndpoint() *pick.Endpoint {
	return endpoints(counted{})[0]
}

func wantHeld(t *testing.T, ep *pick.Endpoint, holders, calls int) {
	t.Helper()
	if h, c := ep.Held(); h != holders || c != calls {
		t.Fatalf("%d holders and %d calls, want %d and %d", h, c, holders, calls)
	}
}

func TestHeld(t *testing.T) {
	ep := newEndpoint()
	for range 3 {
		if !ep.Hold() {
			t.Fatal("an endpoint that nobody retired could not be held")
		}
	}
	ep.Begin()
	ep.Begin()
	wantHeld(t, ep, 3, 2)
	if got := ep.Cost(0); got != 3 {
		t.Fatalf("cost %v, want 3", got)
	}
	if ep.Finish() || ep.Drop() || ep.Finish() {
		t.Fatal("an endpoint that nobody retired has no last holder")
	}
	wantHeld(t, ep, 0, 0)
}

func TestRetire(t *testing.T) {
	t.Run("held by nobody", func(t *testing.T) {
		ep := newEndpoint()
		if ep.Retired() || !ep.Retire() || !ep.Retired() || ep.Retire() {
			t.Fatal("the first Retire is the last holder")
		}
	})
	t.Run("held by a call", func(t *testing.T) {
		ep := newEndpoint()
		ep.Hold()
		ep.Hold()
		ep.Begin()
		if ep.Retire() {
			t.Fatal("two hold it")
		}
		if ep.Hold() {
			t.Fatal("it is retired")
		}
		wantHeld(t, ep, 2, 1)
		if ep.Drop() {
			t.Fatal("one holds it")
		}
		if !ep.Finish() {
			t.Fatal("that was the last")
		}
		if ep.Hold() || ep.Retire() {
			t.Fatal("it is over")
		}
	})
	t.Run("exactly one is the last", func(t *testing.T) {
		for range 200 {
			ep := newEndpoint()
			var last, late atomic.Int32
			var holders sync.WaitGroup
			for i := range 4 {
				holders.Go(func() {
					for range 20 {
						if !ep.Hold() {
							continue
						}
						if last.Load() > 0 {
							late.Add(1)
						}
						ep.Begin()
						if ep.Finish() {
							last.Add(1)
						}
					}
					if i == 0 && ep.Retire() {
						last.Add(1)
					}
				})
			}
			holders.Wait()
			if last.Load() != 1 || late.Load() != 0 {
				t.Fatalf("%d were the last, %d held it after that", last.Load(), late.Load())
			}
			wantHeld(t, ep, 0, 0)
		}
	})
}

func TestHint(t *testing.T) {
	ep := newEndpoint()
	for _, room := range []bool{false, true, true, false} {
		if ep.Hint(room); ep.Hinted() != room {
			t.Fatalf("hinted %v, want %v", !room, room)
		}
	}
}
