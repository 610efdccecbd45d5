package breaker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
)

var patient = with(func(c *breaker.Config) { c.Wait = true })

// A waiting is an Acquire in a goroutine of its own.
type waiting struct {
	t      *testing.T
	cancel context.CancelFunc
	done   chan struct{}
	permit belfry.Permit
	err    error
	took   time.Duration
}

func wait(t *testing.T, svc *service) *waiting {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiting{t: t, cancel: cancel, done: make(chan struct{})}
	t.Cleanup(cancel)
	start := time.Now()
	go func() {
		defer close(w.done)
		w.permit, w.err = svc.Acquire(ctx)
		w.took = time.Since(start)
	}()
	synctest.Wait()
	return w
}

func (w *waiting) over() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *waiting) wantWaiting() {
	w.t.Helper()
	if w.over() {
		w.t.Fatalf("it got %v, and should wait", w.err)
	}
}

func (w *waiting) wantGranted() {
	w.t.Helper()
	if !w.over() || w.err != nil {
		w.t.Fatalf("it is over is %v, with %v, and should be granted", w.over(), w.err)
	}
}

func TestWait(t *testing.T) {
	bubble(t, "until the probe may go, which is for who came first", func(t *testing.T) {
		svc, in := opened(t, patient)
		line := []*waiting{wait(t, svc), wait(t, svc), wait(t, svc)}
		if s := svc.Stats(); s.Waiting != 3 {
			t.Fatalf("got %+v", s)
		}
		in.becomes(ill)
		pause := time.Second
		for i, w := range line {
			time.Sleep(pause - time.Nanosecond)
			w.wantWaiting()
			time.Sleep(time.Nanosecond)
			w.wantGranted()
			wantState(t, svc, breaker.HalfOpen)
			_, _ = svc.Call(t.Context(), w.permit, 1)
			pause = 2 * time.Second << i
			if s := svc.Stats(); s.State != breaker.Open || s.Waiting != 2-i {
				t.Fatalf("got %+v", s)
			}
		}
	})
	bubble(t, "all go on when it closes", func(t *testing.T) {
		svc, _ := opened(t, patient)
		line := []*waiting{wait(t, svc), wait(t, svc), wait(t, svc)}
		time.Sleep(time.Second)
		line[0].wantGranted()
		line[1].wantWaiting()
		line[2].wantWaiting()
		if _, err := svc.Call(t.Context(), line[0].permit, 1); err != nil {
			t.Fatal(err)
		}
		for _, w := range line[1:] {
			w.wantGranted()
			svc.Release(w.permit)
		}
		wantState(t, svc, breaker.Closed)
	})
	bubble(t, "or when it is reset", func(t *testing.T) {
		svc, _ := opened(t, patient)
		line := []*waiting{wait(t, svc), wait(t, svc), wait(t, svc)}
		svc.Reset()
		if s := svc.Stats(); s.Waiting != 0 {
			t.Errorf("%d wait at a closed breaker", s.Waiting)
		}
		for _, w := range line {
			w.wantGranted()
		}
	})
	bubble(t, "no longer than a pause if it is tripped while a probe is out", func(t *testing.T) {
		svc, _ := opened(t, patient)
		time.Sleep(time.Second)
		mustAcquire(t, svc)
		w := wait(t, svc)
		svc.Trip(0)
		w.wantWaiting()
		after(time.Second)
		w.wantGranted()
	})
	bubble(t, "longer if it is tripped meanwhile", func(t *testing.T) {
		svc, _ := opened(t, patient)
		w := wait(t, svc)
		svc.Trip(time.Hour)
		after(59 * time.Minute)
		w.wantWaiting()
		after(time.Minute)
		w.wantGranted()
	})
	bubble(t, "the next goes at once if a probe is given back, ignored or finds no room", func(t *testing.T) {
		svc, in := opened(t, patient)
		line := []*waiting{wait(t, svc), wait(t, svc), wait(t, svc)}
		time.Sleep(time.Second)
		line[0].wantGranted()
		svc.Release(line[0].permit)
		line[1].wantGranted()
		line[2].wantWaiting()
		in.becomes(func(context.Context, int) (int, error) { return 0, context.Canceled })
		_, _ = svc.Call(t.Context(), line[1].permit, 1)
		line[2].wantGranted()
		if line[2].took != time.Second {
			t.Errorf("it took %v", line[2].took)
		}
	})
	bubble(t, "or if nothing is heard of it for a minute", func(t *testing.T) {
		svc, _ := opened(t, patient)
		line := []*waiting{wait(t, svc), wait(t, svc)}
		time.Sleep(61*time.Second - 1)
		line[0].wantGranted()
		line[1].wantWaiting()
		time.Sleep(time.Nanosecond)
		line[1].wantGranted()
		if _, err := svc.Call(t.Context(), line[0].permit, 1); err != nil { // late, and heard by nobody
			t.Error(err)
		}
		wantState(t, svc, breaker.HalfOpen)
		_, _ = svc.Call(t.Context(), line[1].permit, 1)
		wantState(t, svc, breaker.Closed)
	})
	bubble(t, "who leaves is in nobody's way, and says why", func(t *testing.T) {
		svc, _ := opened(t, patient)
		first, second := wait(t, svc), wait(t, svc)
		first.cancel()
		if !first.over() || !errors.Is(first.err, context.Canceled) || !errors.Is(first.err, belfry.ErrRejected) || errors.Is(first.err, belfry.ErrNotReady) {
			t.Fatalf("got %v", first.err)
		}
		time.Sleep(time.Second)
		second.wantGranted()
		if s := svc.Stats(); s.Waiting != 0 || s.Refused != 1 {
			t.Errorf("got %+v", s)
		}
	})
	bubble(t, "nobody who does not wait overtakes", func(t *testing.T) {
		svc, _ := opened(t, patient)
		w := wait(t, svc)
		if r := refused(t, svc, belfry.NoWait(t.Context())); r.RetryAfter != time.Second {
			t.Errorf("got %+v", r)
		}
		time.Sleep(time.Second)
		refused(t, svc, belfry.NoWait(t.Context()))
		w.wantGranted()
	})
	bubble(t, "a context that is done waits for nothing", func(t *testing.T) {
		svc, _ := opened(t, patient)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r := refused(t, svc, ctx); !errors.Is(&r, context.Canceled) {
			t.Errorf("got %v", &r)
		}
	})
	bubble(t, "the end of who came first at the moment of the probe loses nothing", func(t *testing.T) {
		for range 200 {
			svc, _ := opened(t, patient)
			first, second := wait(t, svc), wait(t, svc)
			time.AfterFunc(time.Second, first.cancel)
			time.Sleep(time.Second)
			if first.over() && first.err == nil {
				svc.Release(first.permit)
			}
			second.wantGranted()
			svc.Release(second.permit)
		}
	})
}

// A reason is why a context has ended. It looks at whether it is asked under the breaker's lock.
type reason struct {
	svc   *service
	under int
}

func (r *reason) Error() string { return "because" }

func (r *reason) Is(error) bool {
	if r.svc.Locked() {
		r.under++
	}
	return false
}

// An endedFor is a context that has ended for a reason of its own.
type endedFor struct {
	context.Context
	why *reason
}

func (c endedFor) Err() error { return c.why }

func TestEndedContext(t *testing.T) {
	for name, cfg := range map[string]breaker.Config{"refuses": exact, "waits": patient} {
		bubble(t, name+": the error of a context is not looked at under the lock", func(t *testing.T) {
			svc, _ := opened(t, cfg)
			ctx := endedFor{t.Context(), &reason{svc: svc}}
			r := refused(t, svc, ctx)
			if ctx.why.under > 0 {
				t.Errorf("it was, %d times", ctx.why.under)
			}
			if own := error(ctx.why); cfg.Wait && r.Err != own {
				t.Errorf("refused for %v, want the context's error", r.Err)
			}
		})
	}
}
