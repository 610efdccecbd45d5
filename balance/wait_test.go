package balance_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/internal/attempt"
)

func TestWait(t *testing.T) {
	bubble(t, "first come, first served, over all endpoints", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.add("a", "b", "c")
		var line []*waiting
		for range 9 {
			line = append(line, w.wait())
		}
		if got := w.Stats().Waiting; got != 9 {
			t.Fatalf("%d wait, want 9", got)
		}
		line[4].cancel()
		line[4].wantFailed()
		line = append(line[:4], line[5:]...)
		for i, a := range line {
			a.wantWaiting()
			w.backend(string(rune('a' + i%3))).Allow(1)
			a.wantGranted()
			if got := w.Stats().Waiting; got != len(line)-1-i {
				t.Fatalf("%d wait after %d were served", got, i+1)
			}
		}
		for _, a := range line {
			w.Release(a.permit)
		}
	})
	bubble(t, "who comes later does not overtake", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").FailAcquire(errLost)
		w.add("a") // its driver pauses
		first := w.wait()
		w.backend("a").Allow(2)
		w.wantRefused() // although there is room: it is spoken for
		second := w.wait()
		time.Sleep(time.Second)
		first.wantGranted()
		second.wantGranted()
		if first.took > second.took+time.Millisecond {
			t.Errorf("served after %v and %v", first.took, second.took)
		}
		w.Release(first.permit)
		w.Release(second.permit)
	})
	bubble(t, "a waiting caller reserves nothing, and leaves nothing when it goes", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.add("a", "b")
		a := w.wait()
		a.cancel()
		if err := a.wantError(); !errors.Is(err, context.Canceled) || !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("error %v", err)
		}
		w.backend("a").Allow(1)
		w.wantStates("a:ready b:not ready")
		if n := w.backend("a").Free(); n != 1 {
			t.Errorf("%d free at a, want 1", n)
		}
		w.do("a", 1)
	})
	bubble(t, "who has left is not in anybody's way", func(t *testing.T) {
		full := &fullAfter{service: echo(), limit: 1}
		w := newWorldOf(t, &world{dial: func(context.Context, string, string) (service, error) { return full, nil }}, balance.Config{})
		w.add("a")
		permit, err := w.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a := w.wait()
		a.cancel()
		a.wantFailed()
		w.Release(permit)
		permit, err = w.Acquire(belfry.NoWait(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		w.Release(permit)
	})
	bubble(t, "what is tried again is shown as dialling", func(t *testing.T) {
		ended, fails := atomic.Int64{}, true
		w := &world{}
		w.dial = func(ctx context.Context, key, addr string) (service, error) {
			if fails {
				fails = false
				return nil, errLost
			}
			return dialUntilCancelled(&ended)(ctx, key, addr)
		}
		newWorldOf(t, w, balance.Config{})
		w.say(discover.Insert("a"), nil)
		w.wantStates("a:backing off")
		time.Sleep(100 * time.Millisecond)
		w.wantStates("a:dialling")
	})
	bubble(t, "one goroutine at most waits for an endpoint, however many callers come and go", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.add("a", "b")
		for range 50 {
			line := []*waiting{w.wait(), w.wait(), w.wait()}
			for _, addr := range []string{"a", "b"} {
				if n := w.backend(addr).Waiting(); n != 1 {
					t.Fatalf("%d goroutines wait for %s", n, addr)
				}
			}
			for _, a := range line {
				a.cancel()
				a.wantFailed()
			}
		}
	})
	bubble(t, "what a caller has begun goes on when it leaves", func(t *testing.T) {
		w := newWorldOf(t, &world{dial: func(ctx context.Context, _, _ string) (service, error) {
			select {
			case <-time.After(time.Second):
				return echo(), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}, balance.Config{})
		w.say(discover.Insert("slow"), nil)
		a := w.wait()
		time.Sleep(999 * time.Millisecond)
		a.cancel()
		a.wantFailed()
		w.wantStates("slow:dialling")
		time.Sleep(time.Millisecond)
		w.wantStates("slow:ready")
	})
	bubble(t, "a call that ends wakes a driver that pauses for a refusal", func(t *testing.T) {
		full := &fullAfter{service: echo(), limit: 1}
		w := newWorldOf(t, &world{dial: func(context.Context, string, string) (service, error) { return full, nil }}, balance.Config{})
		w.add("a")
		permit, err := w.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a := w.wait()
		time.Sleep(10*time.Second + time.Microsecond) // by now pauses are up to 100 ms
		a.wantWaiting()
		begun := time.Now()
		w.Release(permit)
		a.wantGranted()
		if took := time.Since(begun); took > 0 {
			t.Errorf("handed over after %v", took)
		}
		w.Release(a.permit)
	})
	bubble(t, "a waiter is handed whatever becomes free, also what it has tried before", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.backend("a").Allow(1)
		w.add("a", "b")
		ctx := &attempt.Context{Context: t.Context()}
		permit, err := w.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		go func() { w.backend("a").Expect(1).Fail(errLost) }()
		_, _ = w.Call(ctx, permit, 1)
		granted := make(chan error)
		go func() {
			permit, err = w.Acquire(ctx)
			granted <- err
		}()
		synctest.Wait()
		w.backend("a").Allow(1)
		if err := <-granted; err != nil {
			t.Fatal(err)
		}
		w.Release(permit)
	})
	bubble(t, "a context that is done is refused", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.add("a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.Acquire(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("error %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		_, err := w.Acquire(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("error %v after %v", err, time.Since(begun))
		}
		if r, ok := errors.AsType[*belfry.Rejection](err); !ok || r.Layer != "balance" {
			t.Errorf("%v is no rejection of balance", err)
		}
	})
}

// fullAfter refuses at once where others wait.
type fullAfter struct {
	service
	taken atomic.Int64
	limit int64
}

func (f *fullAfter) Acquire(context.Context) (belfry.Permit, error) {
	if f.taken.Add(1) > f.limit {
		f.taken.Add(-1)
		return belfry.Permit{}, errFull
	}
	return belfry.Permit{}, nil
}

func (f *fullAfter) Release(belfry.Permit) { f.taken.Add(-1) }

func (f *fullAfter) Call(ctx context.Context, p belfry.Permit, n int) (int, error) {
	defer f.Release(p)
	return f.service.Call(ctx, p, n)
}

func TestNoEndpoints(t *testing.T) {
	bubble(t, "D7 X6 all endpoints closed: an error at once, that says how each was lost", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.add("a", "b")
		a := w.wait()
		w.backend("a").Close()
		a.wantWaiting()
		w.backend("b").Close()
		err := a.wantError()
		e := noEndpoints(t, err)
		if e.Count(balance.Closed) != 2 || !errors.Is(e.Endpoints[0].Err, belfry.ErrClosed) || !errors.Is(e.Endpoints[1].Err, belfry.ErrClosed) {
			t.Errorf("%+v", e)
		}
		if !errors.Is(err, belfry.ErrNotReady) || errors.Is(err, belfry.ErrClosed) {
			t.Errorf("the source may still bring another: %v", err)
		}
		if err := w.refused(); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("under NoWait: %v", err)
		}
		if a := w.wait(); a.wantError() == nil || a.took != 0 {
			t.Errorf("a later caller waits %v", a.took)
		}

		w.backend("c").Allow(1)
		w.add("c")
		w.do("c", 1) // there is an endpoint again
	})
	bubble(t, "D7 X6 all closed and the source ended: closed for good", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		w.add("a")
		a := w.wait()
		w.end()
		a.wantWaiting()
		w.backend("a").Close()
		if err := a.wantError(); !errors.Is(err, belfry.ErrClosed) || !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("error %v", err)
		}
		if _, err := w.Acquire(belfry.NoWait(t.Context())); !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("under NoWait: %v", err)
		}
	})
	bubble(t, "D7 X6 a source that ends without an endpoint: an error at once", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		a := w.wait()
		time.Sleep(time.Second)
		a.wantWaiting()
		w.end()
		err := a.wantError()
		if _ = noEndpoints(t, err); !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("error %v", err)
		}
		if !w.Stats().Final {
			t.Error("Stats do not say that the source has ended")
		}
	})
	bubble(t, "D7 X6 a source that panics is over, and its error is shown", func(t *testing.T) {
		b, err := balance.New(func(func(discover.Change, error) bool) { panic("planned") },
			func(context.Context, string, string) (service, error) { return echo(), nil }, balance.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		_, err = b.Acquire(t.Context())
		e := noEndpoints(t, err)
		if p, ok := errors.AsType[*balance.PanicError](e.Discovery); !ok || p.Value != "planned" || len(p.Stack) == 0 {
			t.Errorf("discovery error %v", e.Discovery)
		}
		if !strings.Contains(err.Error(), "discovery: panic: planned") {
			t.Errorf("the text is %q", err)
		}
	})
	bubble(t, "D7 X6 the last endpoint removed: waiters wait for discovery, MaxWait at most", func(t *testing.T) {
		w := newWorld(t, balance.Config{AllowEmpty: true, MaxWait: 3 * time.Second})
		w.add("a")
		a := w.wait()
		time.Sleep(time.Hour)
		w.remove("a")
		w.backend("a").Allow(1) // too late
		time.Sleep(time.Second)
		b := w.wait()
		time.Sleep(2*time.Second - 1)
		a.wantWaiting()
		time.Sleep(time.Nanosecond)
		_ = noEndpoints(t, a.wantError())
		time.Sleep(time.Second - 1)
		b.wantWaiting()
		w.backend("b").Allow(1)
		w.add("b")
		b.wantGranted()
		w.Release(b.permit)
	})
	bubble(t, "MaxWait begins anew when the set is empty again, and ends when it is not", func(t *testing.T) {
		w := newWorld(t, balance.Config{AllowEmpty: true, MaxWait: 3 * time.Second})
		a := w.wait()
		time.Sleep(2 * time.Second)
		w.add("a")
		time.Sleep(time.Hour)
		a.wantWaiting()
		w.remove("a")
		time.Sleep(2 * time.Second)
		w.add("a")
		w.remove("a")
		time.Sleep(3*time.Second - 1)
		a.wantWaiting()
		time.Sleep(time.Nanosecond)
		a.wantFailed()
	})
	bubble(t, "MaxWait is each waiter's own, whoever leaves before it", func(t *testing.T) {
		w := newWorld(t, balance.Config{AllowEmpty: true, MaxWait: 3 * time.Second})
		w.add("a")
		a, b, c := w.wait(), w.wait(), w.wait()
		time.Sleep(time.Hour)
		b.cancel() // while there is an endpoint
		b.wantFailed()
		w.remove("a")
		time.Sleep(time.Second)
		d, e := w.wait(), w.wait()
		a.cancel()
		a.wantFailed()
		e.cancel()
		e.wantFailed()
		time.Sleep(2*time.Second - 1)
		c.wantWaiting()
		time.Sleep(time.Nanosecond)
		c.wantFailed()
		time.Sleep(time.Second - 1)
		d.wantWaiting()
		time.Sleep(time.Nanosecond)
		d.wantFailed()
	})
	bubble(t, "D8 a failed endpoint is tried again for ever, with growing pauses", func(t *testing.T) {
		w := newWorld(t, balance.Config{MinBackoff: 100 * time.Millisecond, MaxBackoff: 10 * time.Second})
		w.say(discover.Insert("nowhere"), nil)
		a := w.wait()
		time.Sleep(time.Second)
		w.mu.Lock()
		early := len(w.dials)
		w.mu.Unlock()
		time.Sleep(time.Hour)
		w.mu.Lock()
		late := len(w.dials) - early
		w.mu.Unlock()
		if early < 3 || early > 40 || late < 360 || late > 2000 {
			t.Errorf("%d dials in the first second, %d in the hour after it", early, late)
		}
		a.wantWaiting()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.Acquire(ctx)
		if e := noEndpoints(t, err); !errors.Is(err, context.DeadlineExceeded) || e.Count(balance.BackingOff) != 1 || e.Endpoints[0].Err == nil {
			t.Errorf("error %v", err)
		}
		w.backend("nowhere").Allow(1)
		time.Sleep(10 * time.Second)
		a.wantGranted()
		w.Release(a.permit)
		w.wantStates("nowhere:ready")
	})
	bubble(t, "the text counts states and shows a few errors", func(t *testing.T) {
		w := newWorld(t, balance.Config{})
		for i := range 5 {
			w.say(discover.Insert(strconv.Itoa(i)), nil)
		}
		synctest.Wait()
		err := w.refused()
		text := err.Error()
		for _, part := range []string{"balance: ", "5 endpoints: 5 backing off", "nobody at", "; …"} {
			if !strings.Contains(text, part) {
				t.Errorf("%q does not contain %q", text, part)
			}
		}
		if n := strings.Count(text, "nobody at"); n != 3 {
			t.Errorf("%q shows %d errors, want 3", text, n)
		}
	})
}

func TestErrors(t *testing.T) {
	e := &balance.NoEndpointsError{
		Endpoints: []balance.EndpointError{
			{Key: "a", State: balance.Closed, Err: belfry.ErrClosed},
			{Key: "b", State: balance.Dialling},
			{Key: "c", State: balance.Dialling, Err: errLost},
		},
		Discovery: errors.New("dns"),
		Err:       context.DeadlineExceeded,
	}
	const want = "3 endpoints: 2 dialling, 1 closed; a: belfry: closed; c: endpoint lost; discovery: dns: context deadline exceeded"
	if got := e.Error(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if errors.Is(e, belfry.ErrClosed) || errors.Is(e, errLost) || !errors.Is(e, context.DeadlineExceeded) {
		t.Error("it matches what ended the wait, and nothing else")
	}
	e.Endpoints = e.Endpoints[:1]
	e.Discovery, e.Err = nil, belfry.ErrNotReady
	if got, want := e.Error(), "1 endpoint: closed; a: belfry: closed: belfry: not ready"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got, want := (&balance.NoEndpointsError{}).Error(), "no endpoints"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	p := &balance.PanicError{Value: errLost}
	if p.Error() != "panic: endpoint lost" || !errors.Is(p, errLost) {
		t.Errorf("%v", p)
	}
	if errors.Is(&balance.PanicError{Value: "text"}, errLost) {
		t.Error("a text is no error")
	}
}
