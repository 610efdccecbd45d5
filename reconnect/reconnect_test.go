package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/reconnect"
)

func seconds(at ...float64) (d []time.Duration) {
	for _, s := range at {
		d = append(d, time.Duration(s*float64(time.Second)))
	}
	return d
}

func TestMaking(t *testing.T) {
	bubble(t, "nothing is made before it is asked for", func(t *testing.T) {
		g := newTarget()
		svc := connecting(t, g, exact)
		elapse(time.Hour)
		if n := len(g.times()); n != 0 || svc.Stats().State != reconnect.Idle {
			t.Errorf("%d dials, %+v", n, svc.Stats())
		}
		served(t, svc)
		served(t, svc)
		if n := len(g.times()); n != 1 {
			t.Errorf("%d dials, want 1", n)
		}
	})
	bubble(t, "SR1 who waits gets on when the service is made and ready", func(t *testing.T) {
		g := newTarget()
		g.becomes(time.Second, nil)
		svc := connecting(t, g, exact)
		c := call(t.Context(), svc, "a")
		d := call(t.Context(), svc, "b")
		elapse(999 * time.Millisecond)
		waits(t, c)
		elapse(time.Millisecond)
		if r := got(t, c); r.res != "a" || r.err != nil {
			t.Errorf("got %+v", r)
		}
		if r := got(t, d); r.res != "b" || r.err != nil {
			t.Errorf("got %+v", r)
		}
		if n := len(g.times()); n != 1 {
			t.Errorf("%d dials, want one for both", n)
		}
	})
	bubble(t, "SR2 who waits gets the error of the attempt", func(t *testing.T) {
		g := newTarget()
		g.becomes(time.Second, errRefused)
		svc := connecting(t, g, exact)
		c := call(t.Context(), svc, "a")
		elapse(time.Second)
		err := got(t, c).err
		if got, want := err.Error(), "reconnect: not made, retry after 1s: attempt 1 failed: connection refused"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if !errors.Is(err, errRefused) || !errors.Is(err, belfry.ErrNotReady) || errors.Is(err, belfry.ErrClosed) {
			t.Errorf("%v matches wrongly", err)
		}
	})
	bubble(t, "X5 D56 an error belongs to the attempt that met it", func(t *testing.T) {
		g := newTarget()
		g.becomes(0, errRefused)
		svc := connecting(t, g, exact)
		if r := got(t, call(t.Context(), svc, "a")); !errors.Is(r.err, errRefused) {
			t.Fatalf("got %+v", r)
		}
		g.becomes(0, nil)
		elapse(time.Second) // nobody asks again
		if s := svc.Stats(); s.State != reconnect.Ready || s.LastError != nil {
			t.Fatalf("got %+v", s)
		}
		served(t, svc)
	})
	bubble(t, "SR4 a caller that leaves stops nothing", func(t *testing.T) {
		g := newTarget()
		g.becomes(time.Second, nil)
		svc := connecting(t, g, exact)
		ctx, cancel := context.WithCancel(t.Context())
		c := call(ctx, svc, "a")
		cancel()
		r := refused(t, got(t, c).err)
		if !errors.Is(r, context.Canceled) || r.Reason != "context done while waiting" {
			t.Errorf("got %v", r)
		}
		elapse(time.Second)
		if _, err := belfry.TryDo(t.Context(), svc, "b"); err != nil {
			t.Error(err)
		}
		if n := len(g.times()); n != 1 {
			t.Errorf("%d dials, want 1", n)
		}
	})
	bubble(t, "under NoWait it is not ready, and is made", func(t *testing.T) {
		g := newTarget()
		g.becomes(time.Second, nil)
		svc := connecting(t, g, exact)
		_, err := belfry.TryDo(t.Context(), svc, "a")
		if !errors.Is(err, belfry.ErrNotReady) {
			t.Fatalf("got %v", err)
		}
		elapse(time.Second)
		if _, err := belfry.TryDo(t.Context(), svc, "b"); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "SR3 making sees the values of the call that started it, and each call its own", func(t *testing.T) {
		type key struct{}
		var seen []any
		var ended []bool
		var made atomic.Bool
		svc := reconnect.New(func(ctx context.Context) (service, error) {
			time.Sleep(time.Second)
			seen, ended = append(seen, ctx.Value(key{})), append(ended, ctx.Err() != nil)
			if !made.Load() {
				return nil, errRefused
			}
			return belfry.Of(func(ctx context.Context, req string) (string, error) {
				if v := ctx.Value(key{}); v != "second" {
					t.Errorf("the call sees %v", v)
				}
				return req, nil
			}), nil
		}, exact)
		defer svc.Close()
		first, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "first"))
		c := call(first, svc, "a")
		cancel()
		got(t, c)
		elapse(time.Second)
		made.Store(true)
		elapse(2 * time.Second)
		if _, err := belfry.Do(context.WithValue(t.Context(), key{}, "second"), svc, "b"); err != nil {
			t.Error(err)
		}
		if !slices.Equal(seen, []any{"first", "first"}) || slices.Contains(ended, true) {
			t.Errorf("making saw %v, ended %v", seen, ended)
		}
	})
	bubble(t, "one attempt has so much time", func(t *testing.T) {
		g := newTarget()
		g.becomes(time.Hour, nil)
		cfg := exact
		cfg.Timeout = 3 * time.Second
		svc := connecting(t, g, cfg)
		begun := time.Now()
		_, err := belfry.Do(t.Context(), svc, "a")
		if time.Since(begun) != 3*time.Second || errors.Is(err, context.DeadlineExceeded) || attempt(t, err).Err != context.DeadlineExceeded {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
	bubble(t, "a panic, a Goexit and nothing at all are errors of the attempt", func(t *testing.T) {
		for want, f := range map[string]func() (service, error){
			"make panicked: connection refused":      func() (service, error) { panic(errRefused) },
			"ended by runtime.Goexit":                func() (service, error) { runtime.Goexit(); return nil, nil },
			"make returned neither a service nor an": func() (service, error) { return nil, nil },
		} {
			svc := reconnect.New(func(context.Context) (service, error) { return f() }, exact)
			_, err := belfry.Do(t.Context(), svc, "a")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if p, ok := errors.AsType[*reconnect.PanicError](err); ok && (!errors.Is(err, errRefused) || !strings.Contains(string(p.Stack), "TestMaking")) {
				t.Errorf("got %v, at %s", err, p.Stack)
			}
			_ = svc.Close()
		}
	})
	bubble(t, "that another service is closed says nothing about this one", func(t *testing.T) {
		other := &belfry.Rejection{Layer: "other", RetryAfter: time.Hour, Err: belfry.ErrClosed}
		g := newTarget()
		g.becomes(0, other)
		svc := connecting(t, g, exact)
		_, err := belfry.Do(t.Context(), svc, "a")
		if errors.Is(err, belfry.ErrClosed) || refused(t, err).RetryAfter != time.Second || attempt(t, err).Err != other {
			t.Errorf("got %v", err)
		}
	})
}

func TestPauses(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  reconnect.Config
		want []time.Duration
	}{
		{"at their longest", exact, seconds(0, 1, 3, 7, 15, 23, 31)},
		{"in the middle", reconnect.Config{MinBackoff: time.Second, MaxBackoff: 8 * time.Second, Rand: chance(0.5)}, seconds(0, 0.5, 1.5, 3.5, 7.5, 11.5)},
		{"by default", reconnect.Config{Rand: chance(0)}, seconds(0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 12.7, 22.7, 32.7)},
	} {
		bubble(t, c.name, func(t *testing.T) {
			g := newTarget()
			g.becomes(0, errRefused)
			svc := connecting(t, g, c.cfg)
			_, _ = belfry.TryDo(t.Context(), svc, "a")
			elapse(c.want[len(c.want)-1] + time.Millisecond)
			if got := g.times(); !slices.Equal(got, c.want) {
				t.Errorf("dials at %v, want %v", got, c.want)
			}
		})
	}
	bubble(t, "who comes in a pause is refused, and told how long it lasts", func(t *testing.T) {
		g := newTarget()
		g.becomes(0, errRefused)
		svc := connecting(t, g, exact)
		_, _ = belfry.Do(t.Context(), svc, "a")
		elapse(400 * time.Millisecond)
		for name, do := range map[string]func(context.Context, service, string) (string, error){
			"Do": belfry.Do[string, string], "TryDo": belfry.TryDo[string, string],
		} {
			_, err := do(t.Context(), svc, "b")
			if r := refused(t, err); r.RetryAfter != 600*time.Millisecond || !errors.Is(err, belfry.ErrNotReady) || attempt(t, err).Attempt != 1 {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	bubble(t, "with Wait callers wait through failures and pauses", func(t *testing.T) {
		g := newTarget()
		g.becomes(0, errRefused)
		cfg := exact
		cfg.Wait = true
		svc := connecting(t, g, cfg)
		c := call(t.Context(), svc, "a")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		d := call(ctx, svc, "b")
		elapse(2 * time.Second)
		r := refused(t, got(t, d).err)
		if !errors.Is(r, context.DeadlineExceeded) || errors.Is(r, errRefused) || !strings.Contains(r.Error(), "attempt 2 failed: connection refused") {
			t.Errorf("got %v", r)
		}
		if _, err := belfry.TryDo(t.Context(), svc, "c"); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
		g.becomes(0, nil)
		elapse(time.Second)
		if r := got(t, c); r.res != "a" || r.err != nil {
			t.Errorf("got %+v", r)
		}
	})
}

var errGone error = &belfry.Rejection{Layer: "conn", Reason: "gone", Err: belfry.ErrClosed}

func TestLost(t *testing.T) {
	remaking := exact
	remaking.Remake = reconnect.Broken

	bubble(t, "one that was good is made again at once, and the caller gets on", func(t *testing.T) {
		g := newTarget()
		svc := connecting(t, g, exact)
		served(t, svc)
		elapse(time.Minute)
		g.conn().set(func(c *conn) { c.acquire = errGone })
		served(t, svc)
		if got := g.times(); !slices.Equal(got, seconds(0, 60)) {
			t.Errorf("dials at %v", got)
		}
		if s := svc.Stats(); s.Lost != 1 || s.Made != 2 || s.Attempts != 2 {
			t.Errorf("got %+v", s)
		}
	})
	bubble(t, "any other error of Acquire is about now", func(t *testing.T) {
		g := newTarget()
		svc := connecting(t, g, remaking)
		served(t, svc)
		for _, want := range []error{io.EOF, &belfry.Rejection{Layer: "breaker", Err: belfry.ErrNotReady}} {
			g.conn().set(func(c *conn) { c.acquire = want })
			if _, err := svc.Acquire(t.Context()); err != want {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		g.conn().set(func(c *conn) { c.acquire = nil })
		served(t, svc)
		if n := len(g.times()); n != 1 {
			t.Errorf("%d dials", n)
		}
	})
	for _, call := range []bool{false, true} {
		bubble(t, fmt.Sprintf("D57 one that is made and no good is not made in a loop (seen by calls: %v)", call), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			var at []time.Duration
			begun := time.Now()
			cfg := remaking
			cfg.Rand, cfg.Wait = rand.NewPCG(seed, 0), true
			svc := reconnect.New(func(context.Context) (service, error) {
				at = append(at, time.Since(begun))
				if call {
					return &conn{call: io.EOF, ends: make(chan struct{})}, nil
				}
				return &conn{acquire: errGone, ends: make(chan struct{})}, nil
			}, cfg)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for ctx.Err() == nil {
				_, _ = belfry.Do(ctx, svc, "a")
			}
			svc.Close()
			synctest.Wait()
			// Pauses of 4 s in the mean after the fourth: 7.5 in the first minute with 1, 2 and 4 before them.
			if len(at) < 5 || len(at) > 60 {
				t.Errorf("%d dials in a minute: %v", len(at), at)
			}
		})
	}
	bubble(t, "D57 what was lost unused counts as a failure, also of later attempts", func(t *testing.T) {
		g := newTarget()
		svc := connecting(t, g, remaking)
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			p, err := svc.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			g.conn().set(func(c *conn) { c.call = io.EOF })
			if _, err := svc.Call(t.Context(), p, "a"); err != io.EOF {
				t.Fatalf("got %v", err)
			}
			s := svc.Stats()
			if s.State != reconnect.BackingOff || s.RetryIn != want || !strings.Contains(s.LastError.Error(), "was lost: EOF") {
				t.Fatalf("got %+v, want a pause of %v", s, want)
			}
			_, err = belfry.Do(t.Context(), svc, "b")
			if e := attempt(t, err); !e.Lost || e.Err != io.EOF {
				t.Errorf("got %v", err)
			}
			elapse(want)
		}
		served(t, svc)
		if s := svc.Stats(); s.Failures != 0 {
			t.Errorf("got %+v", s)
		}
	})
	bubble(t, "D58 the classifier says which calls lose it", func(t *testing.T) {
		for _, c := range []struct {
			remake func(error) bool
			err    error
			lost   uint64
		}{
			{reconnect.Broken, io.EOF, 1},
			{reconnect.Broken, errRefused, 0},
			{reconnect.Broken, belfry.Sent(errGone), 0},
			{reconnect.Broken, nil, 0},
			{nil, io.EOF, 0},
			{nil, errGone, 1},
			{func(error) bool { return true }, &belfry.Rejection{Layer: "late", Err: belfry.ErrNotReady}, 0},
		} {
			g := newTarget()
			cfg := exact
			cfg.Remake = c.remake
			svc := connecting(t, g, cfg)
			served(t, svc)
			g.conn().set(func(conn *conn) { conn.call = c.err })
			if _, err := belfry.Do(t.Context(), svc, "a"); err != c.err {
				t.Errorf("got %v, want %v as it is", err, c.err)
			}
			synctest.Wait()
			if s := svc.Stats(); s.Lost != c.lost || s.Made != 1+c.lost {
				t.Errorf("%v: got %+v", c.err, s)
			}
		}
	})
	bubble(t, "an old one does not lose its successor, and is closed after its last call", func(t *testing.T) {
		g := newTarget()
		svc := connecting(t, g, remaking)
		served(t, svc)
		old, slow := g.conn(), make(chan struct{})
		old.set(func(c *conn) { c.slow, c.call = slow, io.EOF })
		calls := []<-chan result{call(t.Context(), svc, "a"), call(t.Context(), svc, "b")}
		kept, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		old.set(func(c *conn) { c.acquire = errGone })
		served(t, svc)
		if g.conn() == old {
			t.Fatal("it was not made again")
		}
		close(slow)
		for _, c := range calls {
			if r := got(t, c); r.err != io.EOF {
				t.Errorf("got %+v", r)
			}
		}
		if s := svc.Stats(); s.Lost != 1 || s.State != reconnect.Ready {
			t.Errorf("got %+v", s)
		}
		if old.closed() != 0 {
			t.Error("closed although a permit of it is out")
		}
		if _, err := svc.Call(t.Context(), kept, "c"); err != io.EOF {
			t.Errorf("got %v, want the call to go to the old one", err)
		}
		synctest.Wait()
		if old.closed() != 1 || g.conn().closed() != 0 {
			t.Errorf("closed %d times, and its successor %d times", old.closed(), g.conn().closed())
		}
	})
	bubble(t, "who waits in the Acquire of a lost one goes on to its successor", func(t *testing.T) {
		g := newTarget()
		svc := connecting(t, g, remaking)
		served(t, svc)
		held, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		old := g.conn()
		old.set(func(c *conn) { c.full, c.call = true, io.EOF })
		c := call(t.Context(), svc, "a")
		waits(t, c)
		_, _ = svc.Call(t.Context(), held, "b")
		if r := got(t, c); r.res != "a" || r.err != nil {
			t.Errorf("got %+v", r)
		}
		if old.closed() != 1 {
			t.Error("the lost one is not closed")
		}
	})
	bubble(t, "one that is lost while it grants has its permit back", func(t *testing.T) {
		g := newTarget()
		svc := connecting(t, g, remaking)
		served(t, svc)
		held, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		old := g.conn()
		old.set(func(c *conn) { c.call = io.EOF })
		grants := make(chan struct{})
		old.set(func(c *conn) { c.grants = grants })
		c := call(t.Context(), svc, "a")
		waits(t, c)
		_, _ = svc.Call(t.Context(), held, "b")
		close(grants)
		if r := got(t, c); r.res != "a" || r.err != nil {
			t.Errorf("got %+v", r)
		}
		old.set(func(c *conn) {
			if c.held != 0 {
				t.Errorf("%d permits are left", c.held)
			}
		})
	})
	bubble(t, "a streamed call keeps it open", func(t *testing.T) {
		g := newTarget()
		var done func()
		sem := belfry.Semantics[string, string]{Until: func(res string, d func()) string { done = d; return res }}
		svc := reconnect.New(g.dial, remaking, sem)
		served(t, svc)
		_ = svc.Close()
		synctest.Wait()
		if g.conn().closed() != 0 {
			t.Error("closed in the middle of a response")
		}
		done()
		synctest.Wait()
		if g.conn().closed() != 1 {
			t.Error("not closed after the response")
		}
	})
}

func TestClose(t *testing.T) {
	bubble(t, "SR4 it ends the attempt, and refuses those who wait", func(t *testing.T) {
		g := newTarget()
		g.becomes(time.Hour, nil)
		svc := connecting(t, g, reconnect.Config{Timeout: 2 * time.Hour})
		c := call(t.Context(), svc, "a")
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
		if r := got(t, c); !errors.Is(r.err, belfry.ErrClosed) {
			t.Errorf("got %+v", r)
		}
		if _, err := belfry.Do(t.Context(), svc, "b"); !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if g.made() != 0 || svc.Stats().State != reconnect.Closed {
			t.Errorf("%d made, %+v", g.made(), svc.Stats())
		}
	})
	bubble(t, "before anybody has asked", func(t *testing.T) {
		g := newTarget()
		svc := connecting(t, g, exact)
		_ = svc.Close()
		if _, err := svc.Acquire(t.Context()); !errors.Is(err, belfry.ErrClosed) || len(g.times()) != 0 {
			t.Errorf("got %v, and %d dials", err, len(g.times()))
		}
	})
	bubble(t, "in a pause, with Wait", func(t *testing.T) {
		g := newTarget()
		g.becomes(0, errRefused)
		cfg := exact
		cfg.Wait = true
		svc := connecting(t, g, cfg)
		c := call(t.Context(), svc, "a")
		_ = svc.Close()
		if r := got(t, c); !errors.Is(r.err, belfry.ErrClosed) {
			t.Errorf("got %+v", r)
		}
		elapse(time.Hour)
		if n := len(g.times()); n != 1 {
			t.Errorf("%d dials", n)
		}
	})
	bubble(t, "it closes the service, and returns its error", func(t *testing.T) {
		g := newTarget()
		svc := connecting(t, g, exact)
		served(t, svc)
		if err := svc.Close(); err != errClosing {
			t.Errorf("got %v", err)
		}
		if err := svc.Close(); err != nil || g.conn().closed() != 1 {
			t.Errorf("again: %v, closed %d times", err, g.conn().closed())
		}
	})
	bubble(t, "a service that is made all the same is closed", func(t *testing.T) {
		c := &conn{ends: make(chan struct{})}
		until := make(chan struct{})
		svc := reconnect.New(func(context.Context) (service, error) { <-until; return c, nil }, exact)
		_, _ = belfry.TryDo(t.Context(), svc, "a")
		synctest.Wait()
		_ = svc.Close()
		if c.closed() != 0 {
			t.Fatal("before it was made?")
		}
		close(until)
		synctest.Wait()
		if c.closed() != 1 {
			t.Error("it is not closed")
		}
	})
	bubble(t, "calls go on, and the last closes the service", func(t *testing.T) {
		g := newTarget()
		svc := connecting(t, g, exact)
		served(t, svc)
		slow := make(chan struct{})
		g.conn().set(func(c *conn) { c.slow = slow })
		c := call(t.Context(), svc, "a")
		if err := svc.Close(); err != nil || g.conn().closed() != 0 {
			t.Errorf("got %v, closed %d times", err, g.conn().closed())
		}
		close(slow)
		if r := got(t, c); r.res != "a" || r.err != nil || g.conn().closed() != 1 {
			t.Errorf("got %+v, closed %d times", r, g.conn().closed())
		}
	})
}

func TestOnChange(t *testing.T) {
	bubble(t, "it is told of each change, and may use the service and close it", func(t *testing.T) {
		g := newTarget()
		g.becomes(time.Second, errRefused)
		var told []string
		var svc *reconnect.Service[string, string]
		cfg := exact
		cfg.Remake = reconnect.Broken
		cfg.OnChange = func(s reconnect.Stats) {
			if now := svc.Stats(); now.State != s.State {
				t.Errorf("told %v, and it is %v", s.State, now.State)
			}
			told = append(told, s.State.String())
			if s.Lost == 1 && s.State == reconnect.Ready {
				_ = svc.Close()
			}
		}
		svc = connecting(t, g, cfg)
		_, _ = belfry.Do(t.Context(), svc, "a")
		g.becomes(time.Second, nil)
		elapse(2 * time.Second)
		served(t, svc)
		g.conn().set(func(c *conn) { c.call = io.EOF })
		_, _ = belfry.Do(t.Context(), svc, "b")
		elapse(time.Second)
		want := []string{"connecting", "backing off", "connecting", "ready", "connecting", "ready"}
		if !slices.Equal(told, want) || svc.Stats().State != reconnect.Closed {
			t.Errorf("told %q, want %q", told, want)
		}
	})
	bubble(t, "its panic is lost, and the next attempt waits for it", func(t *testing.T) {
		g := newTarget()
		g.becomes(0, errRefused)
		cfg := exact
		n := 0
		cfg.OnChange = func(s reconnect.Stats) {
			if n++; n == 1 {
				panic("no")
			}
			if s.State == reconnect.BackingOff {
				time.Sleep(time.Minute)
			}
		}
		svc := connecting(t, g, cfg)
		_, _ = belfry.TryDo(t.Context(), svc, "a")
		elapse(61 * time.Second)
		if got := g.times(); !slices.Equal(got, seconds(0, 60)) {
			t.Errorf("dials at %v", got)
		}
		_ = svc.Close()
		elapse(time.Minute)
	})
}

func TestStats(t *testing.T) {
	bubble(t, "what they say", func(t *testing.T) {
		g := newTarget()
		begun := time.Now()
		g.becomes(time.Second, errRefused)
		svc := connecting(t, g, exact)
		want := func(want reconnect.Stats) {
			t.Helper()
			s := svc.Stats()
			if (s.LastError == nil) != (want.LastError == nil) || !errors.Is(s.LastError, want.LastError) {
				t.Errorf("last error %v, want %v", s.LastError, want.LastError)
			}
			s.LastError, want.LastError = nil, nil
			if s != want {
				t.Errorf("got %+v, want %+v", s, want)
			}
		}
		want(reconnect.Stats{State: reconnect.Idle, Since: begun})
		_ = call(t.Context(), svc, "a")
		want(reconnect.Stats{State: reconnect.Connecting, Since: begun, Attempts: 1})
		elapse(1500 * time.Millisecond)
		want(reconnect.Stats{
			State: reconnect.BackingOff, Since: begun.Add(time.Second), LastError: errRefused,
			Attempts: 1, Failures: 1, RetryIn: 500 * time.Millisecond,
		})
		g.becomes(time.Second, nil)
		elapse(time.Second)
		want(reconnect.Stats{State: reconnect.Connecting, Since: begun.Add(2 * time.Second), LastError: errRefused, Attempts: 2, Failures: 1})
		elapse(time.Second)
		want(reconnect.Stats{State: reconnect.Ready, Since: begun.Add(3 * time.Second), Attempts: 2, Made: 1, Failures: 1})
		served(t, svc)
		want(reconnect.Stats{State: reconnect.Ready, Since: begun.Add(3 * time.Second), Attempts: 2, Made: 1})
		svc.Close()
		want(reconnect.Stats{State: reconnect.Closed, Since: begun.Add(3500 * time.Millisecond), Attempts: 2, Made: 1})
	})
	t.Run("names of states", func(t *testing.T) {
		var names []string
		for s := range reconnect.Closed + 2 {
			names = append(names, s.String())
		}
		if got, want := strings.Join(names, ","), "idle,connecting,ready,backing off,closed,unknown"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
