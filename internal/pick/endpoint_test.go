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

// Counts that are read while calls come and go never fall, and calls in flight are never more than those who hold it.
func TestCountMeanwhile(t *testing.T) {
	ep := newEndpoint()
	const each = 3000
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			for range each {
				ep.Hold()
				ep.Begin()
				switch i {
				case 0:
					ep.Fail()
				case 1:
					ep.Ignore()
				default:
					ep.Finish()
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { callers.Wait(); close(ended) }()
	var before pick.Counts
	for done := false; !done; {
		select {
		case <-ended:
			done = true
		default:
		}
		c := ep.Count()
		if c.Holders < 0 || c.Holders > 4 || c.Calls < 0 || c.Calls > c.Holders {
			t.Fatalf("%d hold it, and %d have calls", c.Holders, c.Calls)
		}
		if c.Successes < before.Successes || c.Failures < before.Failures || c.Ignored < before.Ignored || c.Successes > 2*each {
			t.Fatalf("counted %+v, and then %+v", before, c)
		}
		before = c
	}
	if want := (pick.Counts{Successes: 2 * each, Failures: each, Ignored: each}); before != want {
		t.Errorf("got %+v, want %+v", before, want)
	}
}

func TestRetire(t *testing.T) {
	t.Run("held by nobody", func(t *testing.T) {
		ep := newEndpoint()
		if !ep.Retire() || ep.Retire() {
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
		if ep.Drop() {
			t.Fatal("two hold it")
		}
		wantHeld(t, ep, 2, 1)
		if ep.Drop() {
			t.Fatal("one holds it")
		}
		if !ep.Finish() {
			t.Fatal("that was the last")
		}
		if ep.Hold() || ep.Drop() || ep.Watch() || ep.Unwatch() || ep.Retire() {
			t.Fatal("it is over")
		}
	})
	t.Run("watched", func(t *testing.T) {
		ep := newEndpoint()
		if !ep.Watch() || ep.Retire() {
			t.Fatal("one watches it")
		}
		if !ep.Unwatch() {
			t.Fatal("that was the last")
		}
	})
	t.Run("found retired by who would hold it, after the last holder went", func(t *testing.T) {
		for _, late := range []func(*pick.Endpoint) (ok bool, end func() bool){
			func(ep *pick.Endpoint) (bool, func() bool) { return ep.Hold(), ep.Drop },
			func(ep *pick.Endpoint) (bool, func() bool) { return ep.Watch(), ep.Unwatch },
		} {
			ep := newEndpoint()
			ep.Hold()
			ep.Retire()
			ok, end := late(ep)
			if ok || ep.Drop() {
				t.Fatal("it is retired, and somebody has not let go yet")
			}
			if !end() {
				t.Fatal("that was the last")
			}
		}
	})
	t.Run("exactly one is the last", func(t *testing.T) {
		for range 300 {
			ep := newEndpoint()
			var last, late atomic.Int32
			told := func(now bool) {
				if now {
					last.Add(1)
				}
			}
			var holders sync.WaitGroup
			for i := range 4 {
				holders.Go(func() {
					for range 20 {
						switch {
						case !ep.Hold():
							told(ep.Drop())
							continue
						case last.Load() > 0:
							late.Add(1)
						}
						ep.Begin()
						told(ep.Finish())
					}
					if i == 0 {
						told(ep.Retire())
					}
				})
			}
			holders.Go(func() {
				for range 20 {
					if ep.Watch() {
						ep.Take()
						told(ep.Drop())
					} else {
						told(ep.Unwatch())
					}
				}
			})
			holders.Wait()
			if last.Load() != 1 || late.Load() != 0 {
				t.Fatalf("%d were the last, %d held it after that", last.Load(), late.Load())
			}
			wantHeld(t, ep, 0, 0)
		}
	})
}

func TestWatch(t *testing.T) {
	ep := newEndpoint()
	ep.Watch()
	wantHeld(t, ep, 0, 0)
	if got := ep.Cost(0); got != 0 {
		t.Fatalf("cost %v, want 0", got)
	}
	ep.Take()
	wantHeld(t, ep, 1, 0)
	if ep.Drop() {
		t.Fatal("nobody retired it")
	}
}

func TestHint(t *testing.T) {
	ep := newEndpoint()
	for _, room := range []bool{false, true, true, false} {
		if ep.Hint(room); ep.Hinted() != room {
			t.Fatalf("hinted %v, want %v", !room, room)
		}
	}
}
