package timeout_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/timeout"
)

// The kinds of contexts that calls are given.
var kinds = map[string]belfry.Semantics[string, string]{
	"plain":    {},
	"streamed": {Until: func(res string, done func()) string { done(); return res }},
}

// within runs f as a call under a timeout of a second.
func within(ctx context.Context, sem belfry.Semantics[string, string], f func(context.Context)) {
	svc := timeout.New[string, string](spy{call: f}, time.Second, timeout.Config{}, sem)
	_, _ = belfry.Do(ctx, svc, "")
}

type key struct{}

// A wrapper hides all but the methods of a Context, as a layer's own context does.
type wrapper struct{ context.Context }

func TestContext(t *testing.T) {
	for name, sem := range kinds {
		bubble(t, name+": what it says before and after the deadline", func(t *testing.T) {
			caller := context.WithValue(t.Context(), key{}, "value")
			within(caller, sem, func(ctx context.Context) {
				begin := time.Now()
				if end, ok := ctx.Deadline(); !ok || !end.Equal(begin.Add(time.Second)) {
					t.Errorf("the deadline is %v", end)
				}
				check := func(wantErr, wantCause error) {
					t.Helper()
					if err, cause := ctx.Err(), context.Cause(ctx); err != wantErr || cause != wantCause {
						t.Errorf("got %v because of %v, want %v because of %v", err, cause, wantErr, wantCause)
					}
					if v := ctx.Value(key{}); v != "value" {
						t.Errorf("got %v", v)
					}
				}
				check(nil, nil)
				time.Sleep(time.Second - time.Nanosecond)
				check(nil, nil)
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				check(context.DeadlineExceeded, timeout.Err)
				select {
				case <-ctx.Done():
				default:
					t.Error("Done is open after the deadline")
				}
				check(context.DeadlineExceeded, timeout.Err)
			})
			within(caller, sem, func(ctx context.Context) {
				begin := time.Now()
				<-ctx.Done()
				took(t, begin, time.Second)
				if err, cause := ctx.Err(), context.Cause(ctx); err != context.DeadlineExceeded || cause != timeout.Err {
					t.Errorf("got %v because of %v", err, cause)
				}
				if v := ctx.Value(key{}); v != "value" {
					t.Errorf("got %v", v)
				}
			})
		})

		bubble(t, name+": a derived context ends with the same error and cause", func(t *testing.T) {
			within(t.Context(), sem, func(ctx context.Context) {
				for _, between := range []context.Context{ctx, wrapper{ctx}, context.WithValue(ctx, key{}, 1)} {
					derived, cancel := context.WithCancel(between)
					defer cancel()
					later, cancel := context.WithTimeout(derived, time.Hour)
					defer cancel()
					<-later.Done()
					if err, cause := later.Err(), context.Cause(later); err != context.DeadlineExceeded || cause != timeout.Err {
						t.Errorf("got %v because of %v", err, cause)
					}
				}
			})
		})

		bubble(t, name+": what is derived without cancelling lives on", func(t *testing.T) {
			within(t.Context(), sem, func(ctx context.Context) {
				free := context.WithoutCancel(ctx)
				<-ctx.Done()
				if free.Err() != nil || context.Cause(free) != nil || free.Done() != nil {
					t.Errorf("got %v", free.Err())
				}
			})
		})

		bubble(t, name+": a caller's context that has ended already", func(t *testing.T) {
			caller, cancel := context.WithCancelCause(t.Context())
			cancel(errBoom)
			svc := timeout.New[string, string](spy{call: func(ctx context.Context) {
				if err := ctx.Err(); err != context.Canceled {
					t.Errorf("got %v", err)
				}
				<-ctx.Done()
				time.Sleep(time.Hour)
				if err, cause := ctx.Err(), context.Cause(ctx); err != context.Canceled || cause != errBoom {
					t.Errorf("got %v because of %v", err, cause)
				}
			}}, time.Second, timeout.Config{}, sem)
			permit, _ := svc.Acquire(caller)
			_, _ = svc.Call(caller, permit, "")
		})

		bubble(t, name+": a caller's end that nobody watched counts before the deadline", func(t *testing.T) {
			caller, cancel := context.WithCancelCause(t.Context())
			within(caller, sem, func(ctx context.Context) {
				time.Sleep(time.Millisecond)
				cancel(errBoom)
				time.Sleep(time.Hour)
				if err, cause := ctx.Err(), context.Cause(ctx); err != context.Canceled || cause != errBoom {
					t.Errorf("got %v because of %v", err, cause)
				}
			})
		})

		t.Run(name+": two make the standard context at once", func(t *testing.T) {
			caller := &counting{Context: t.Context(), done: make(chan struct{})}
			within(caller, sem, func(ctx context.Context) {
				var inside <-chan struct{}
				caller.asked = func() {
					caller.asked = nil
					inside = ctx.Done()
				}
				if outside := ctx.Done(); outside != inside || ctx.Done() != outside {
					t.Error("two channels of one context")
				}
				if n := caller.registered.Load(); n != 1 {
					t.Errorf("%d functions registered, want 1", n)
				}
			})
			if n := caller.registered.Load(); n != 0 {
				t.Errorf("%d functions are still registered", n)
			}
		})

		t.Run(name+": no goroutine for a derived context, through wrappers too", func(t *testing.T) {
			caller, cancel := context.WithCancel(t.Context())
			defer cancel()
			within(caller, sem, func(ctx context.Context) {
				before := runtime.NumGoroutine()
				for range 10 {
					_, stop := context.WithCancel(wrapper{context.WithValue(wrapper{ctx}, key{}, 1)})
					defer stop()
				}
				if n := runtime.NumGoroutine() - before; n > 0 {
					t.Errorf("%d goroutines for 10 derived contexts", n)
				}
			})
		})

		t.Run(name+": it leaves nothing behind in the caller's context", func(t *testing.T) {
			caller := &counting{Context: t.Context(), done: make(chan struct{})}
			within(caller, sem, func(ctx context.Context) {
				_ = ctx.Done()
				if n := caller.registered.Load(); n == 0 {
					t.Error("it does not follow the caller's context")
				}
			})
			if n := caller.registered.Load(); n != 0 {
				t.Errorf("%d functions are still registered", n)
			}
		})

		t.Run(name+": concurrent use", func(t *testing.T) {
			for range 200 {
				caller, cancel := context.WithCancel(t.Context())
				var users sync.WaitGroup
				var dones [8]<-chan struct{}
				within(caller, sem, func(ctx context.Context) {
					for i := range dones {
						users.Go(func() {
							_ = ctx.Err()
							dones[i] = ctx.Done()
							_, _ = ctx.Deadline()
							_ = context.Cause(wrapper{ctx})
							if i == 3 {
								cancel()
							}
						})
					}
					if caller.Err() == nil { // some end the call before, some after its users
						users.Wait()
					}
				})
				users.Wait()
				for _, done := range dones {
					if done != dones[0] {
						t.Fatal("two channels of one context")
					}
				}
				<-dones[0]
			}
		})
	}
}

// TestFollowingEndsWithTheCall holds up the goroutine in which the caller's context reports its end.
func TestFollowingEndsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		caller := &slow{Context: ctx}
		returned := make(chan struct{})
		gate := make(chan struct{})
		go func() {
			defer close(returned)
			within(caller, kinds["streamed"], func(ctx context.Context) {
				_ = ctx.Done()
				caller.gate.Store(&gate)
				cancel()
				pause(time.Millisecond)
			})
		}()
		pause(time.Second)
		synctest.Wait()
		select {
		case <-returned:
			t.Error("Call has returned, and the caller's context is still in use")
		default:
		}
		close(gate)
		<-returned
	})
}

// A slow context lets its Err wait for a gate.
type slow struct {
	context.Context
	gate atomic.Pointer[chan struct{}]
}

func (s *slow) Err() error {
	if gate := s.gate.Load(); gate != nil {
		<-*gate
	}
	return s.Context.Err()
}

// A counting context is nobody's of package context; it counts who wants to know when it ends.
type counting struct {
	context.Context
	done       chan struct{}
	asked      func() // by Done, if it is set
	registered atomic.Int32
}

func (c *counting) Done() <-chan struct{} {
	if c.asked != nil {
		c.asked()
	}
	return c.done
}

func (c *counting) AfterFunc(func()) func() bool {
	c.registered.Add(1)
	return sync.OnceValue(func() bool { c.registered.Add(-1); return true })
}
