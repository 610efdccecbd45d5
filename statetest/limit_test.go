package statetest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

// A caller acquires, and may call and leave.
type caller struct {
	ctx     context.Context
	cancel  context.CancelFunc
	granted bool
	permit  belfry.Permit
	err     error
	done    bool // Acquire has returned
	end     chan struct{}
}

func newCaller(ctx context.Context) *caller {
	c := &caller{end: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// The model: so many places, those who have one, and those who wait, in order.
type limitModel struct {
	places                    int
	reserved, flying, waiting []*caller
}

func (m *limitModel) taken() int { return len(m.reserved) + len(m.flying) }

// grant gives places to those who have waited for longest.
func (m *limitModel) grant() {
	for m.taken() < m.places && len(m.waiting) > 0 {
		m.reserved = append(m.reserved, m.waiting[0])
		m.waiting = m.waiting[1:]
	}
}

func TestLimiter(t *testing.T) {
	check(t, func(t *rapid.T, ctx context.Context) {
		m := &limitModel{places: rapid.IntRange(0, 4).Draw(t, "places")}
		limiter := limit.NewLimiter(m.places)
		svc := limit.NewConcurrency(belfry.Of(func(ctx context.Context, c *caller) (int, error) {
			select {
			case <-c.end:
			case <-ctx.Done():
			}
			return 0, nil
		}), limiter)
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(*rapid.T) {
				c := newCaller(ctx)
				go func() {
					c.permit, c.err = svc.Acquire(c.ctx)
					c.done, c.granted = true, c.err == nil
				}()
				synctest.Wait()
				m.waiting = append(m.waiting, c)
				m.grant()
			},
			"acquire under NoWait": func(t *rapid.T) {
				c := newCaller(ctx)
				permit, err := svc.Acquire(belfry.NoWait(ctx))
				if free := m.taken() < m.places; free != (err == nil) {
					t.Fatalf("%d of %d taken: got %v", m.taken(), m.places, err)
				}
				if err == nil {
					c.permit, c.done, c.granted = permit, true, true
					m.reserved = append(m.reserved, c)
				}
			},
			"leave the line": func(t *rapid.T) {
				i, c := pick(t, m.waiting)
				c.cancel()
				synctest.Wait()
				m.waiting = slices.Delete(m.waiting, i, i+1)
				if !c.done || c.granted {
					t.Fatalf("it has left, and got %v, %v", c.done, c.granted)
				}
			},
			"release": func(t *rapid.T) {
				i, c := pick(t, m.reserved)
				svc.Release(c.permit)
				synctest.Wait()
				m.reserved = slices.Delete(m.reserved, i, i+1)
				m.grant()
			},
			"call": func(t *rapid.T) {
				i, c := pick(t, m.reserved)
				go func() { _, _ = svc.Call(ctx, c.permit, c) }()
				synctest.Wait()
				m.reserved = slices.Delete(m.reserved, i, i+1)
				m.flying = append(m.flying, c)
			},
			"end a call": func(t *rapid.T) {
				i, c := pick(t, m.flying)
				close(c.end)
				synctest.Wait()
				m.flying = slices.Delete(m.flying, i, i+1)
				m.grant()
			},
			"resize": func(t *rapid.T) {
				m.places = rapid.IntRange(0, 4).Draw(t, "places")
				if err := limiter.Resize(m.places); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				m.grant()
			},
			"": func(t *rapid.T) {
				for i, c := range m.waiting {
					if c.done {
						t.Fatalf("waiter %d of %d was let in, or refused (%v)", i, len(m.waiting), c.err)
					}
				}
				for _, c := range slices.Concat(m.reserved, m.flying) {
					if !c.granted {
						t.Fatalf("one waits who has a place: %v", c.err)
					}
				}
				s := limiter.Stats()
				if s.Limit != m.places || s.InFlight != len(m.flying) || s.Reserved != len(m.reserved) || s.Waiting != len(m.waiting) {
					t.Fatalf("got %+v, want %d places, %d in flight, %d reserved, %d waiting",
						s, m.places, len(m.flying), len(m.reserved), len(m.waiting))
				}
			},
		})
	})
}
