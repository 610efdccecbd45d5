package statetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
)

// A ticket is a permit of the breaker, and what the model knows of it.
type ticket struct {
	permit belfry.Permit
	probe  bool // it was the probe when it was granted, in this
	turn   int
}

// A flight is a call in progress: it ends with what its end is sent. It counts if that is in the turn in which it began.
type flight struct {
	ticket
	end  chan error
	turn int
}

func TestBreaker(t *testing.T) {
	check(t, func(t *rapid.T, ctx context.Context) {
		// Pauses are 1, 2, 4, 4, … s. A probe is waited for as long as the test lasts.
		const consecutive = 3
		svc := breaker.New(belfry.Of(func(_ context.Context, end chan error) (int, error) { return 0, <-end }), breaker.Config{
			Consecutive: consecutive, MinBackoff: time.Second, MaxBackoff: 4 * time.Second, Rand: chance(0), ProbeTimeout: time.Hour,
		})
		defer svc.Close()

		// The model: the state, when it may go half-open, failures in a row, failed probes in a row, and whether the probe is out. A turn
		// is the time between two changes: what a ticket of another turn has to say does not count.
		state, due, run, probes, out, turn := breaker.Closed, time.Time{}, 0, 0, false, 0
		var held []ticket
		var flying []flight
		change := func(to breaker.State) {
			state, run, out = to, 0, false
			turn++
		}
		open := func() {
			due = time.Now().Add(time.Second << min(probes, 2))
			change(breaker.Open)
		}
		acquire := func(t *rapid.T) (ticket, bool) {
			if state == breaker.Open && !time.Now().Before(due) {
				change(breaker.HalfOpen)
			}
			want := state == breaker.Closed || state == breaker.HalfOpen && !out
			permit, err := svc.Acquire(ctx)
			if want != (err == nil) || err != nil && !errors.Is(err, belfry.ErrNotReady) {
				t.Fatalf("%v, probe out %v: got %v", state, out, err)
			}
			if r, ok := errors.AsType[*belfry.Rejection](err); ok && state == breaker.Open && r.RetryAfter != time.Until(due) {
				t.Fatalf("retry after %v, want %v", r.RetryAfter, time.Until(due))
			}
			out = out || want && state == breaker.HalfOpen
			return ticket{permit, state == breaker.HalfOpen, turn}, want
		}
		begin := func(tk ticket) flight {
			f := flight{tk, make(chan error), turn}
			go func() { _, _ = svc.Call(ctx, tk.permit, f.end) }()
			return f
		}
		end := func(f flight, err error) {
			f.end <- err
			synctest.Wait()
			switch {
			case f.probe && f.ticket.turn != turn: // it was given up
			case !f.probe && (f.turn != turn || state != breaker.Closed):
			case f.probe && err != nil:
				probes++
				open()
			case f.probe:
				probes = 0
				change(breaker.Closed)
			case err == nil:
				run = 0
			default:
				if run++; run == consecutive {
					open()
				}
			}
		}
		call := func(tk ticket, err error) { end(begin(tk), err) }
		outcome := rapid.SampledFrom([]error{nil, errBoom, errBoom})
		t.Repeat(map[string]func(*rapid.T){
			"call": func(t *rapid.T) {
				if tk, ok := acquire(t); ok {
					call(tk, outcome.Draw(t, "error"))
				}
			},
			"acquire": func(t *rapid.T) {
				if tk, ok := acquire(t); ok {
					held = append(held, tk)
				}
			},
			"call with a permit": func(t *rapid.T) {
				i, tk := pick(t, held)
				held = slices.Delete(held, i, i+1)
				call(tk, outcome.Draw(t, "error"))
			},
			"begin a call": func(t *rapid.T) {
				if tk, ok := acquire(t); ok {
					flying = append(flying, begin(tk))
					synctest.Wait()
				}
			},
			"begin a call with a permit": func(t *rapid.T) {
				i, tk := pick(t, held)
				held = slices.Delete(held, i, i+1)
				flying = append(flying, begin(tk))
				synctest.Wait()
			},
			"end a call": func(t *rapid.T) {
				i, f := pick(t, flying)
				flying = slices.Delete(flying, i, i+1)
				end(f, outcome.Draw(t, "error"))
			},
			"release": func(t *rapid.T) {
				i, tk := pick(t, held)
				held = slices.Delete(held, i, i+1)
				svc.Release(tk.permit)
				synctest.Wait()
				if tk.probe && tk.turn == turn {
					out = false
				}
			},
			"reset": func(*rapid.T) {
				svc.Reset()
				probes = 0
				change(breaker.Closed)
			},
			"time passes": func(t *rapid.T) {
				time.Sleep(time.Duration(rapid.IntRange(1, 20).Draw(t, "tenths")) * 100 * time.Millisecond)
				synctest.Wait()
			},
			"": func(t *rapid.T) {
				if s := svc.Stats(); s.State != state || s.Consecutive != run {
					t.Fatalf("got %+v, want %v with %d failures", s, state, run)
				}
			},
		})
		for _, tk := range held {
			svc.Release(tk.permit)
		}
		for _, f := range flying {
			close(f.end)
		}
	})
}
