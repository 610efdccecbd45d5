package belfrytest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
)

var errTest = errors.New("test error")

// both runs test inside a bubble and outside.
func both(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Run("bubble", func(t *testing.T) { synctest.Test(t, test) })
		t.Run("real time", test)
	})
}

type answer struct {
	res string
	err error
}

func do(ctx context.Context, svc belfry.Service[string, string], req string) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		res, err := belfry.Do(ctx, svc, req)
		c <- answer{res, err}
	}()
	return c
}

func TestBackend(t *testing.T) {
	ctx := context.Background()

	both(t, "T1 a request arrives and is answered", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		backend.ExpectNone()
		backend.Allow(1)
		got := do(ctx, svc, "hello")
		backend.Expect("hello").Answer("world")
		if a := <-got; a != (answer{"world", nil}) {
			t.Errorf("got %v, want world", a)
		}
		backend.ExpectNone()
	})

	both(t, "T2 without a grant Acquire waits", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		got := do(ctx, svc, "hello")
		backend.ExpectNone()
		if n := backend.Waiting(); n != 1 {
			t.Errorf("%d callers wait, want 1", n)
		}
		backend.Allow(1)
		backend.Next().Answer("world")
		<-got
	})

	both(t, "D62 grants are counted, whoever asks", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		for i := range 8 {
			do(ctx, svc, string(rune('a'+i)))
		}
		for n := range 4 {
			backend.Allow(1)
			req := backend.Next()
			backend.ExpectNone()
			if w := backend.Waiting(); w != 7-n {
				t.Errorf("after %d grants %d callers wait, want %d", n+1, w, 7-n)
			}
			req.Answer("")
			backend.ExpectNone()
		}
	})

	both(t, "D18 a reservation that is not used can be given back", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		backend.Allow(1)
		r, err := belfry.Reserve(ctx, svc)
		if err != nil {
			t.Fatal(err)
		}
		got := do(ctx, svc, "hello")
		backend.ExpectNone()
		r.Release()
		backend.Expect("hello").Answer("world")
		<-got
		if backend.Free() != 0 || backend.Held() != 0 {
			t.Errorf("%d grants are free and %d held, want none", backend.Free(), backend.Held())
		}
	})

	both(t, "several may wait for requests", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		seen := make(chan string)
		for range 3 {
			go func() {
				req := backend.Next()
				req.Answer("")
				seen <- req.Req
			}()
		}
		backend.Allow(3)
		for i := range 3 {
			do(ctx, svc, string(rune('a'+i)))
		}
		backend.ExpectNone()
		for range 3 {
			<-seen
		}
	})

	both(t, "waiters are served first come, first served", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		for i := range 4 {
			do(ctx, svc, string(rune('a'+i)))
			for backend.Waiting() != i+1 {
				time.Sleep(time.Millisecond)
			}
		}
		for i := range 4 {
			backend.Allow(1)
			backend.Expect(string(rune('a' + i))).Answer("")
		}
	})

	both(t, "a request can be failed", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		backend.Allow(1)
		got := do(ctx, svc, "hello")
		backend.Next().Fail(errTest)
		if a := <-got; a.err != errTest {
			t.Errorf("got %v, want the error as it is", a)
		}
	})

	both(t, "a call may panic", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		backend.Allow(1)
		got := make(chan any)
		go func() {
			defer func() { got <- recover() }()
			_, _ = belfry.Do(ctx, svc, "hello")
		}()
		backend.Next().Handle(func(context.Context, string) (string, error) { panic(errTest) })
		if v := <-got; v != errTest {
			t.Errorf("recovered %v, want the panic", v)
		}
	})

	both(t, "a call ends with its context", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		backend.Allow(1)
		ctx, cancel := context.WithCancel(ctx)
		got := do(ctx, svc, "hello")
		req := backend.Expect("hello")
		cancel()
		if a := <-got; a.err != context.Canceled {
			t.Errorf("got %v, want context.Canceled", a)
		}
		if req.Context().Err() == nil {
			t.Error("the request's context is not that of Call")
		}
	})

	both(t, "a handler may overstay the context", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		backend.Allow(1)
		ctx, cancel := context.WithCancel(ctx)
		got := do(ctx, svc, "hello")
		backend.Next().Handle(func(ctx context.Context, req string) (string, error) {
			<-ctx.Done()
			return req + " anyway", nil
		})
		cancel()
		if a := <-got; a != (answer{"hello anyway", nil}) {
			t.Errorf("got %v, want the handler's answer", a)
		}
	})

	both(t, "an Acquire can be failed", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		got := do(ctx, svc, "first")
		for backend.Waiting() != 1 {
			time.Sleep(time.Millisecond)
		}
		backend.FailAcquire(errTest) // who waits
		if a := <-got; !errors.Is(a.err, errTest) {
			t.Errorf("got %v, want %v", a, errTest)
		}
		backend.Allow(1)
		backend.FailAcquire(errTest) // who comes next
		if _, err := svc.Acquire(ctx); err != errTest {
			t.Errorf("Acquire failed with %v, want the error as it is", err)
		}
		got = do(ctx, svc, "third")
		backend.Expect("third").Answer("")
		<-got
	})

	both(t, "a wait ends with its context", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		ctx, cancel := context.WithCancel(ctx)
		got := do(ctx, svc, "hello")
		for backend.Waiting() != 1 {
			time.Sleep(time.Millisecond)
		}
		cancel()
		if a := <-got; !errors.Is(a.err, context.Canceled) || !errors.Is(a.err, belfry.ErrRejected) {
			t.Errorf("got %v, want a refusal for context.Canceled", a)
		}
		if n := backend.Waiting(); n != 0 {
			t.Errorf("%d callers wait, want 0", n)
		}
	})

	both(t, "NoWait does not wait", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		if _, err := svc.Acquire(belfry.NoWait(ctx)); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("Acquire failed with %v, want ErrNotReady", err)
		}
		backend.Allow(1)
		permit, err := svc.Acquire(belfry.NoWait(ctx))
		if err != nil {
			t.Fatal(err)
		}
		svc.Release(permit)
	})

	both(t, "Close ends every Acquire", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		got := do(ctx, svc, "hello")
		for backend.Waiting() != 1 {
			time.Sleep(time.Millisecond)
		}
		backend.Close()
		if a := <-got; !errors.Is(a.err, belfry.ErrClosed) {
			t.Errorf("who waited got %v, want ErrClosed", a)
		}
		backend.Allow(1)
		if _, err := svc.Acquire(ctx); !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("Acquire failed with %v, want ErrClosed", err)
		}
	})

	both(t, "what was granted before Close is not sent after", func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		backend.Allow(2)
		r, _ := belfry.Reserve(ctx, svc)
		got := do(ctx, svc, "hello")
		req := backend.Next()
		backend.Close()
		if _, err := r.Call(ctx, "late"); !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("Call failed with %v, want ErrClosed", err)
		}
		req.Answer("world")
		if a := <-got; a != (answer{"world", nil}) {
			t.Errorf("got %v, want the answer", a)
		}
	})
}

func TestBackendNextLetsTimePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend, svc := NewBackend[string, string](t)
		backend.Allow(1)
		time.AfterFunc(time.Hour, func() { do(t.Context(), svc, "hello") })
		backend.Expect("hello").Answer("world")
	})
}

// What a test has left undone fails it, and nothing hangs.
func TestBackendFails(t *testing.T) {
	ctx := context.Background()

	both(t, "T2 a permit that was never granted", func(t *testing.T) {
		wantFailure(t, func(ft TB) {
			backend, svc := NewBackend[string, string](ft)
			backend.Allow(0)
			if _, err := svc.Call(ctx, belfry.Permit{}, "hello"); err != belfry.ErrSpent {
				t.Errorf("Call returned %v, want ErrSpent", err)
			}
			backend.ExpectNone()
		}, "rule 2: Call of hello with a permit that was never granted")
	})
	both(t, "a foreign permit", func(t *testing.T) {
		wantFailure(t, func(ft TB) {
			_, svc := NewBackend[string, string](ft)
			other, otherSvc := NewBackend[string, string](ft)
			other.Allow(1)
			permit, _ := otherSvc.Acquire(ctx)
			svc.Release(permit)
			svc.Release(belfry.NewPermit(new(int)))
			otherSvc.Release(permit)
		}, "rule 2: Release of a permit that another service granted", "(it holds a *int)")
	})
	both(t, "a permit used twice", func(t *testing.T) {
		wantFailure(t, func(ft TB) {
			backend, svc := NewBackend[string, string](ft)
			backend.Allow(1)
			permit, _ := svc.Acquire(ctx)
			svc.Release(permit)
			_, _ = svc.Call(ctx, permit, "hello")
			if backend.Free() != 1 {
				t.Errorf("%d grants are free, want 1", backend.Free())
			}
		}, "rule 2: Call of hello with a permit that was spent already")
	})
	both(t, "a permit left over", func(t *testing.T) {
		wantFailure(t, func(ft TB) {
			backend, svc := NewBackend[string, string](ft)
			backend.Allow(1)
			_, _ = svc.Acquire(ctx)
		}, "rule 2: a permit was neither spent by Call nor given back by Release, granted to\n\t")
	})
	both(t, "a request never answered", func(t *testing.T) {
		var got <-chan answer
		wantFailure(t, func(ft TB) {
			backend, svc := NewBackend[string, string](ft)
			backend.Allow(1)
			got = do(ctx, svc, "hello")
			backend.Expect("hello")
		}, "request hello was never answered")
		if a := <-got; a.err == nil || errors.Is(a.err, belfry.ErrRejected) {
			t.Errorf("got %v, want an error of a sent request", a)
		}
	})
	both(t, "a request never looked at", func(t *testing.T) {
		var got <-chan answer
		wantFailure(t, func(ft TB) {
			backend, svc := NewBackend[string, string](ft)
			backend.Allow(1)
			got = do(ctx, svc, "hello")
			backend.Waiting()
			for backend.Free() > 0 || backend.Held() > 0 {
				time.Sleep(time.Millisecond)
			}
		}, "request hello arrived, and the test never looked at it")
		<-got
	})
	both(t, "another request than expected", func(t *testing.T) {
		var got <-chan answer
		wantFailure(t, func(ft TB) {
			backend, svc := NewBackend[string, string](ft)
			backend.Allow(1)
			got = do(ctx, svc, "hello")
			backend.Expect("goodbye")
			t.Error("the test went on")
		}, "got request hello, want goodbye")
		<-got
	})
	both(t, "a request where none should be", func(t *testing.T) {
		var got <-chan answer
		wantFailure(t, func(ft TB) {
			backend, svc := NewBackend[string, string](ft)
			backend.Allow(1)
			got = do(ctx, svc, "hello")
			for backend.Free() > 0 || backend.Held() > 0 {
				time.Sleep(time.Millisecond)
			}
			backend.ExpectNone()
			backend.Next().Answer("")
		}, "want no request, got hello")
		<-got
	})
	both(t, "a request answered twice", func(t *testing.T) {
		wantFailure(t, func(ft TB) {
			backend, svc := NewBackend[string, string](ft)
			backend.Allow(1)
			got := do(ctx, svc, "hello")
			req := backend.Next()
			req.Answer("")
			<-got
			req.Answer("")
		}, "request hello was answered twice")
	})
	both(t, "a request answered after its context ended", func(t *testing.T) {
		wantFailure(t, func(ft TB) {
			backend, svc := NewBackend[string, string](ft)
			backend.Allow(1)
			ctx, cancel := context.WithCancel(ctx)
			got := do(ctx, svc, "hello")
			req := backend.Next()
			cancel()
			<-got
			req.Answer("")
		}, "request hello is over: context canceled")
	})
	both(t, "a negative number of grants", func(t *testing.T) {
		wantFailure(t, func(ft TB) {
			backend, _ := NewBackend[string, string](ft)
			backend.Allow(-1)
		}, "must not be negative")
	})
	t.Run("no request at all", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			wantFailure(t, func(ft TB) {
				backend, _ := NewBackend[string, string](ft)
				backend.Next()
				t.Error("the test went on")
			}, "no request arrived within 24h")
			if waited := time.Since(begun); waited != virtualPatience {
				t.Errorf("Next waited %v, want %v", waited, virtualPatience)
			}
		})
	})
	both(t, "who waits when the test ends is let go", func(t *testing.T) {
		var got <-chan answer
		wantFailure(t, func(ft TB) {
			backend, svc := NewBackend[string, string](ft)
			got = do(ctx, svc, "hello")
			for backend.Waiting() != 1 {
				time.Sleep(time.Millisecond)
			}
		})
		if a := <-got; !errors.Is(a.err, belfry.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", a)
		}
	})
}

func TestStrict(t *testing.T) {
	ctx := context.Background()
	var calls atomic.Int64
	f := belfry.Of(func(_ context.Context, req int) (int, error) {
		calls.Add(1)
		return -req, nil
	})

	both(t, "right use passes", func(t *testing.T) {
		svc := Strict(t, f)
		if res, err := belfry.Do(ctx, svc, 3); res != -3 || err != nil {
			t.Errorf("Do(3) = %d, %v; want -3", res, err)
		}
		r, err := belfry.Reserve(ctx, svc)
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
		r.Release()
	})
	both(t, "a refusal passes", func(t *testing.T) {
		backend, inner := NewBackend[int, int](t)
		svc := Strict(t, inner)
		backend.FailAcquire(errTest)
		if _, err := svc.Acquire(ctx); err != errTest {
			t.Errorf("Acquire failed with %v, want %v", err, errTest)
		}
	})
	both(t, "double use and foreign permits", func(t *testing.T) {
		calls.Store(0)
		wantFailure(t, func(ft TB) {
			svc, other := Strict(ft, f), Strict(ft, f)
			permit, _ := svc.Acquire(ctx)
			_, _ = svc.Call(ctx, permit, 1)
			_, _ = svc.Call(ctx, permit, 2)
			svc.Release(permit)
			foreign, _ := other.Acquire(ctx)
			svc.Release(foreign)
			other.Release(foreign)
			_, err := svc.Call(ctx, belfry.Permit{}, 3)
			if err != belfry.ErrSpent {
				t.Errorf("Call returned %v, want ErrSpent", err)
			}
		},
			"rule 2: Call of 2 with a permit that was spent already, granted to\n\t",
			"rule 2: Release of a permit that was spent already",
			"rule 2: Release of a permit that another service granted",
			"rule 2: Call of 3 with a permit that was never granted",
		)
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls got through, want 1", n)
		}
	})
	both(t, "a permit left over", func(t *testing.T) {
		wantFailure(t, func(ft TB) {
			_, _ = Strict(ft, f).Acquire(ctx)
		}, "rule 2: a permit was neither spent by Call nor given back by Release")
	})
	t.Run("it keeps the contract", func(t *testing.T) {
		TestLayer(t, func(t testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
			return Strict(t, inner), nil
		})
	})
}
