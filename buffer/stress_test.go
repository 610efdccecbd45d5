package buffer_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/internal/attempt"
)

// TestHandOffAgainstCancel cancels calls and waiters for seats in the very moment in which the inner service gets ready: nobody
// overtakes, nobody is forgotten, no seat is lost.
func TestHandOffAgainstCancel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		synctest.Test(t, func(t *testing.T) { handOffAgainstCancel(t, r) })
	}
}

func handOffAgainstCancel(t *testing.T, r *rand.Rand) {
	const callers = 7
	bound := callers - r.IntN(2)*3 // or some wait for a seat
	inner := &moody{places: make(chan struct{}, 1), calm: true}
	svc := buffer.New(service(inner), bound, buffer.Config{})
	inner.places <- struct{}{} // taken
	var served []int
	var cancels []context.CancelFunc
	var mu sync.Mutex
	var all sync.WaitGroup
	succeeded := 0
	inner.serve = func(i int) { served = append(served, i) } // one at a time
	for i := range callers {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), number{}, i))
		cancels = append(cancels, cancel)
		all.Go(func() {
			if _, err := belfry.Do(ctx, svc, ""); err == nil {
				mu.Lock()
				succeeded++
				mu.Unlock()
			}
		})
		synctest.Wait()
	}
	all.Go(func() { <-inner.places })
	for _, i := range r.Perm(callers)[:r.IntN(callers+1)] {
		all.Go(cancels[i])
	}
	all.Wait()
	if bound == callers && !slices.IsSorted(served) {
		t.Errorf("served in the order %v", served)
	}
	s := svc.Stats()
	if s.Seated != 0 || s.Queued != 0 || s.Waiting != 0 || int(s.Admitted) != len(served) || int(s.Admitted+s.Cancelled) != callers {
		t.Errorf("left behind: %+v, %d served", s, len(served))
	}
	for _, cancel := range cancels {
		cancel()
	}
}

// TestStress mixes everything that can happen in a room, in each order, and then looks for what is left.
func TestStress(t *testing.T) {
	for _, cfg := range []buffer.Config{
		{},
		{MaxWait: 5 * time.Millisecond},
		{Order: buffer.LIFO},
		{Order: buffer.CoDel, Target: time.Millisecond, Interval: 8 * time.Millisecond},
	} {
		t.Run(cfg.Order.String(), func(t *testing.T) {
			for range 20 {
				seed := rand.Uint64()
				synctest.Test(t, func(t *testing.T) { stress(t, seed, cfg) })
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

func stress(t *testing.T, seed uint64, cfg buffer.Config) {
	r := rand.New(rand.NewPCG(seed, 0))
	bound, closes := 1+r.IntN(4), r.IntN(4) == 0
	inner := &moody{places: make(chan struct{}, 1+r.IntN(3)), r: rand.New(rand.NewPCG(seed, 1))}
	svc := buffer.New(service(inner), bound, cfg)
	var all sync.WaitGroup
	for i := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 2+i))
		all.Go(func() {
			for range 50 {
				once(t.Context(), r, svc)
			}
		})
	}
	if closes {
		pause(t.Context(), r.IntN(60))
		all.Go(func() { _ = svc.Close() })
	}
	all.Wait()
	s := svc.Stats()
	if s.Seated != 0 || s.Queued != 0 || s.Waiting != 0 || s.Closed != closes {
		t.Errorf("left behind: %+v", s)
	}
	if n := len(inner.places); n != 0 {
		t.Errorf("%d permits of the inner service left behind", n)
	}
	inner.calm = true
	for i := range bound + 1 {
		_, err := svc.Acquire(belfry.NoWait(t.Context()))
		if granted := err == nil; granted != (i < bound && !closes) {
			t.Errorf("seat %d of %d: %v", i+1, bound, err)
		}
	}
}

// once takes a seat, perhaps under a deadline or without waiting, and then calls or gives it back.
func once(ctx context.Context, r *rand.Rand, svc room) {
	defer func() { _ = recover() }()
	wait, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(20))*time.Millisecond)
	defer cancel()
	if r.IntN(4) == 0 {
		wait = belfry.NoWait(ctx)
	}
	permit, err := svc.Acquire(wait)
	if err != nil {
		pause(ctx, r.IntN(3))
		return
	}
	if r.IntN(3) == 0 {
		pause(ctx, r.IntN(3))
	}
	if r.IntN(6) == 0 {
		svc.Release(permit)
		return
	}
	in, stop := context.WithTimeout(ctx, time.Duration(r.IntN(20))*time.Millisecond)
	defer stop()
	if r.IntN(8) == 0 {
		in = attempt.Hedge(in)
	}
	_, _ = svc.Call(in, permit, "")
}

func pause(ctx context.Context, ms int) {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-ctx.Done():
	}
}

// number finds the number of a caller in its context.
type number struct{}

// A moody service has a few places; unless it is calm it takes its time, fails, panics and exits, in Acquire as in Call.
type moody struct {
	places chan struct{}
	serve  func(i int)
	calm   bool

	mu sync.Mutex
	r  *rand.Rand
}

func (m *moody) mood(ctx context.Context) error {
	if m.calm {
		return nil
	}
	m.mu.Lock()
	ms, kind := m.r.IntN(4), m.r.IntN(20)
	m.mu.Unlock()
	if ctx.Err() == nil {
		pause(ctx, ms)
	}
	switch kind {
	case 0:
		return errBoom
	case 1:
		panic(errBoom)
	case 2:
		runtime.Goexit()
	}
	return nil
}

func (m *moody) Acquire(ctx context.Context) (belfry.Permit, error) {
	if err := m.mood(ctx); err != nil {
		return belfry.Permit{}, err
	}
	if ctx.Err() == nil || belfry.NoWait(ctx) == ctx {
		select {
		case m.places <- struct{}{}:
			return belfry.Permit{}, nil
		default:
		}
	}
	select {
	case m.places <- struct{}{}: // perhaps for a context that is done
		return belfry.Permit{}, nil
	case <-ctx.Done():
		return belfry.Permit{}, &belfry.Rejection{Layer: "moody", Err: ctx.Err()}
	}
}

func (m *moody) Call(ctx context.Context, _ belfry.Permit, req string) (string, error) {
	defer func() { <-m.places }()
	if m.serve != nil {
		m.serve(ctx.Value(number{}).(int))
	}
	return req, m.mood(ctx)
}

func (m *moody) Release(belfry.Permit) { <-m.places }
