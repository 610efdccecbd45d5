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
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/limit"
)

// A guest is a call in the room, or past it.
type guest struct {
	cancel  context.CancelFunc
	end     chan struct{}
	err     error
	through bool // it is in the inner service
	since   int  // when it came, in ms
	done    bool
}

func TestBuffer(t *testing.T) {
	check(t, func(t *rapid.T, ctx context.Context) {
		bound := rapid.IntRange(1, 4).Draw(t, "bound")
		places := rapid.IntRange(0, 3).Draw(t, "places")
		limiter := limit.NewLimiter(places)
		inner := limit.NewConcurrency(belfry.Of(func(ctx context.Context, g *guest) (int, error) {
			g.through = true
			select {
			case <-g.end:
			case <-ctx.Done():
			}
			return 0, nil
		}), limiter)
		order := buffer.FIFO
		if rapid.Bool().Draw(t, "LIFO") {
			order = buffer.LIFO
		}
		patience := rapid.IntRange(0, 6).Draw(t, "MaxWait in ms")
		svc := buffer.New(inner, bound, buffer.Config{Order: order, MaxWait: time.Duration(patience) * time.Millisecond})
		defer svc.Close()

		// The model: calls in the room, in the order in which they came, and calls past it. The one inside the inner Acquire was the
		// next when it went there.
		var room, past []*guest
		var head *guest
		now := 0
		next := func() {
			if head == nil && len(room) > 0 {
				head = room[0]
				if order == buffer.LIFO {
					head = room[len(room)-1]
				}
			}
		}
		settle := func() {
			for next(); head != nil && len(past) < places; next() {
				past = append(past, head)
				room = slices.DeleteFunc(room, func(g *guest) bool { return g == head })
				head = nil
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"call": func(t *rapid.T) {
				g := &guest{end: make(chan struct{}), since: now}
				within, cancel := context.WithCancel(ctx)
				g.cancel = cancel
				go func() {
					_, g.err = belfry.TryDo(within, svc, g)
					g.done = true
				}()
				synctest.Wait()
				if len(room) == bound {
					if !g.done || !errors.Is(g.err, belfry.ErrNotReady) {
						t.Fatalf("there is no seat, and it got %v, %v", g.done, g.err)
					}
					return
				}
				room = append(room, g)
				settle()
			},
			"leave the room": func(t *rapid.T) {
				i, g := pick(t, room)
				g.cancel()
				synctest.Wait()
				if !g.done || !errors.Is(g.err, context.Canceled) || !errors.Is(g.err, belfry.ErrRejected) {
					t.Fatalf("it has left, and got %v, %v", g.done, g.err)
				}
				room = slices.Delete(room, i, i+1)
				if head == g {
					head = nil
				}
				settle()
			},
			"end a call": func(t *rapid.T) {
				i, g := pick(t, past)
				close(g.end)
				synctest.Wait()
				if !g.done || g.err != nil {
					t.Fatalf("it has ended, and got %v, %v", g.done, g.err)
				}
				past = slices.Delete(past, i, i+1)
				settle()
			},
			"time passes": func(t *rapid.T) {
				time.Sleep(time.Millisecond)
				synctest.Wait()
				now++
				late := func(g *guest) bool { return patience > 0 && now-g.since == patience }
				for _, g := range room {
					if late(g) && (!g.done || !errors.Is(g.err, belfry.ErrNotReady)) {
						t.Fatalf("it has waited for too long, and got %v, %v", g.done, g.err)
					}
				}
				if head != nil && late(head) {
					head = nil
				}
				room = slices.DeleteFunc(room, late)
				settle()
			},
			"resize": func(t *rapid.T) {
				places = rapid.IntRange(0, 3).Draw(t, "places")
				_ = limiter.Resize(places)
				synctest.Wait()
				settle()
			},
			"": func(t *rapid.T) {
				for i, g := range room {
					if g.done || g.through {
						t.Fatalf("%d of %d in the room is not in it: %v", i, len(room), g.err)
					}
				}
				for _, g := range past {
					if !g.through || g.done {
						t.Fatalf("one should be through, and is not: %v", g.err)
					}
				}
				if s := svc.Stats(); s.Seated != len(room) || s.Queued != len(room) || s.Waiting != 0 {
					t.Fatalf("got %+v, want %d in the room", s, len(room))
				}
			},
		})
	})
}
