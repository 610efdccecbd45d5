package buffer_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
)

// TestPanic ends Acquire and Call of the inner service in ways that do not return.
func TestPanic(t *testing.T) {
	for _, c := range []struct {
		name       string
		wait, call bool // where it happens; without either, in the Acquire under NoWait
		goexit     bool
	}{
		{name: "a panic in Acquire"},
		{name: "a panic in an Acquire that waits", wait: true},
		{name: "a panic in Call", call: true},
		{name: "a Goexit in Acquire", goexit: true},
		{name: "a Goexit in an Acquire that waits", wait: true, goexit: true},
		{name: "a Goexit in Call", call: true, goexit: true},
	} {
		bubble(t, "D25 what ends a call badly reaches its caller, and the others go on: "+c.name, func(t *testing.T) {
			var once sync.Once
			end := func(here bool) {
				if here {
					once.Do(func() {
						if c.goexit {
							runtime.Goexit()
						}
						panic(errBoom)
					})
				}
			}
			wait := make(chan struct{})
			svc := buffer.New(service(faulty{
				acquire: func(ctx context.Context) error {
					if c.wait && ctx.Err() != nil {
						return &belfry.Rejection{Layer: "inner", Err: ctx.Err()}
					}
					if c.wait {
						<-wait
					}
					end(!c.call)
					return nil
				},
				call: func(context.Context) error { end(c.call); return nil },
			}), 2, buffer.Config{})
			ended := make(chan any, 1)
			go func() {
				var got any = "it returned"
				defer func() {
					if got != nil {
						ended <- got
						return
					}
					ended <- recover()
				}()
				got = nil
				_, _ = belfry.Do(t.Context(), svc, "first")
				got = "it returned"
			}()
			synctest.Wait()
			second := call(t.Context(), svc, "second")
			close(wait)
			switch got := done(t, "first", ended); {
			case c.goexit && got != nil, !c.goexit && got != errBoom:
				t.Errorf("the first call ended with %v", got)
			}
			answered(t, second, "second")
			want := buffer.Stats{Bound: 2, Admitted: 1, Failed: 1}
			if c.call {
				want = buffer.Stats{Bound: 2, Admitted: 2}
			}
			wantStats(t, svc, want)
		})
	}
}
