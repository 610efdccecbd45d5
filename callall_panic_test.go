package belfry_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

// A gateway fails in Acquire as it is told to.
type gateway struct {
	belfry.Service[string, string]
	acquire func()
}

func (g gateway) Acquire(ctx context.Context) (belfry.Permit, error) {
	g.acquire()
	return g.Service.Acquire(ctx)
}

// ending runs f in a goroutine, and returns what it panicked with, and whether it has returned.
func ending(f func()) (panicked any, returned bool) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() { panicked = recover() }()
		f()
		returned = true
	}()
	<-over
	return panicked, returned
}

func TestCallAllFaults(t *testing.T) {
	for _, where := range []string{"inputs", "Acquire", "Call"} {
		for how, end := range map[string]func(){"panic": func() { panic(errBoom) }, "Goexit": runtime.Goexit} {
			t.Run(where+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := limit.NewLimiter(2)
					at := func(here string) {
						if here == where {
							end()
						}
					}
					svc := limit.NewConcurrency(gateway{belfry.Of(func(_ context.Context, req string) (string, error) {
						if req == "b" {
							at("Call")
						}
						time.Sleep(time.Second)
						return req, nil
					}), func() {
						if l.Stats().InFlight > 0 { // a is under way
							at("Acquire")
						}
					}}, l)
					var inputs iter.Seq[string] = func(yield func(string) bool) {
						for _, s := range []string{"a", "b"} {
							synctest.Wait()
							if !yield(s) {
								return
							}
							at("inputs")
						}
					}
					var got []string
					panicked, returned := ending(func() {
						for r := range belfry.CallAll(t.Context(), belfry.Service[string, string](svc), inputs, 2) {
							got = append(got, r.Res)
						}
					})
					if returned || !slices.Equal(got, []string{"a"}) {
						t.Errorf("got %q, returned: %v", got, returned)
					}
					if how == "panic" {
						err, _ := panicked.(error)
						p, ok := errors.AsType[*belfry.PanicError](err)
						if !ok || p.Value != errBoom || !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "callall_panic_test.go") {
							t.Errorf("panicked with %v", panicked)
						}
					} else if panicked != nil {
						t.Errorf("panicked with %v", panicked)
					}
					if s := l.Stats(); s.InFlight+s.Reserved != 0 {
						t.Errorf("left behind: %+v", s)
					}
				})
			})
		}
	}

	t.Run("of a call that the loop has left", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			svc := belfry.Of(func(ctx context.Context, req string) (string, error) {
				if req == "b" {
					<-ctx.Done()
					panic("b")
				}
				return req, nil
			})
			panicked, _ := ending(func() {
				for range belfry.CallAll(t.Context(), svc, slices.Values([]string{"a", "b"}), 2) {
					synctest.Wait()
					break
				}
			})
			if err, _ := panicked.(error); err == nil || !strings.HasPrefix(err.Error(), "panic: b\n") {
				t.Errorf("panicked with %v", panicked)
			}
		})
	})

	t.Run("of the loop's own body", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := limit.NewLimiter(2)
			svc := limit.NewConcurrency(belfry.Of(func(ctx context.Context, req string) (string, error) {
				if req == "b" {
					<-ctx.Done()
				}
				return req, nil
			}), l)
			panicked, _ := ending(func() {
				for range belfry.CallAll(t.Context(), belfry.Service[string, string](svc), slices.Values([]string{"a", "b"}), 2) {
					synctest.Wait()
					panic("mine")
				}
			})
			if s := l.Stats(); panicked != "mine" || s.InFlight+s.Reserved != 0 {
				t.Errorf("panicked with %v, left behind %+v", panicked, s)
			}
		})
	})
}
