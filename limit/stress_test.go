package limit_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

// TestHandOffAgainstCancel cancels waiters in the very moment in which places get free: nobody overtakes, and nothing is lost.
func TestHandOffAgainstCancel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			l := limit.NewLimiter(1)
			svc := limit.NewConcurrency(belfry.Of(open), l)
			permit, _ := svc.Acquire(t.Context())
			const waiters = 6
			var mu sync.Mutex
			var served []int
			var cancels []context.CancelFunc
			var all sync.WaitGroup
			for i := range waiters {
				ctx, cancel := context.WithCancel(t.Context())
				cancels = append(cancels, cancel)
				all.Go(func() {
					permit, err := svc.Acquire(ctx)
					if err != nil {
						return
					}
					mu.Lock()
					served = append(served, i)
					mu.Unlock()
					svc.Release(permit)
				})
				synctest.Wait()
			}
			all.Go(func() { svc.Release(permit) })
			for _, i := range r.Perm(waiters)[:r.IntN(waiters+1)] {
				all.Go(cancels[i])
			}
			all.Wait()
			for i := 1; i < len(served); i++ {
				if served[i] < served[i-1] {
					t.Errorf("served in the order %v", served)
				}
			}
			if s := l.Stats(); s.Reserved != 0 || s.Waiting != 0 || int(s.Cancelled)+len(served) != waiters {
				t.Errorf("left behind: %+v, %d served", s, len(served))
			}
			for _, cancel := range cancels {
				cancel()
			}
		})
	}
}

// TestStress mixes everything that can happen to two services over one limiter, and then looks for what is left.
func TestStress(t *testing.T) {
	for range 40 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) { stress(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func stress(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	places := 1 + r.IntN(4)
	l := limit.NewLimiter(places)
	inner := &moody{r: rand.New(rand.NewPCG(seed, 1))}
	plain, streamed := limit.NewConcurrency(inner, l), limit.NewConcurrency(inner, l, streams)
	var all sync.WaitGroup
	for i := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 2+i))
		all.Go(func() {
			for range 60 {
				svc := plain
				if r.IntN(2) == 0 {
					svc = streamed
				}
				once(t.Context(), r, svc)
			}
		})
	}
	all.Wait()
	if s := l.Stats(); s.InFlight != 0 || s.Reserved != 0 || s.Waiting != 0 {
		t.Errorf("left behind: %+v", s)
	}
	if inner.peak > places {
		t.Errorf("%d at once over %d places", inner.peak, places)
	}
	inner.calm = true
	for i := range places + 1 {
		_, err := plain.Acquire(belfry.NoWait(t.Context()))
		if granted := err == nil; granted != (i < places) {
			t.Errorf("place %d of %d: %v", i+1, places, err)
		}
	}
}

// once acquires, perhaps under a deadline or without waiting, and then calls or releases.
func once(ctx context.Context, r *rand.Rand, svc *limit.Concurrency[string, *stream]) {
	defer func() { _ = recover() }()
	wait, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(20))*time.Millisecond)
	defer cancel()
	if r.IntN(4) == 0 {
		wait = belfry.NoWait(ctx)
	}
	permit, err := svc.Acquire(wait)
	if err != nil {
		_ = sleep(ctx, time.Duration(r.IntN(3))*time.Millisecond)
		return
	}
	if r.IntN(4) == 0 {
		svc.Release(permit)
		return
	}
	call, stop := context.WithTimeout(ctx, time.Duration(r.IntN(20))*time.Millisecond)
	defer stop()
	s, err := svc.Call(call, permit, "")
	if err == nil && s.ended != nil {
		_ = sleep(ctx, time.Duration(r.IntN(3))*time.Millisecond)
		s.close()
	}
}

// A moody service takes its time, fails, and panics, in Acquire as in Call.
type moody struct {
	mu            sync.Mutex
	r             *rand.Rand
	running, peak int
	calm          bool
}

func (m *moody) mood(ctx context.Context) error {
	m.mu.Lock()
	pause, kind, calm := m.r.IntN(4), m.r.IntN(10), m.calm
	m.mu.Unlock()
	if calm {
		return nil
	}
	if err := sleep(ctx, time.Duration(pause)*time.Millisecond); err != nil {
		return err
	}
	switch kind {
	case 0:
		return errBoom
	case 1:
		panic(errBoom)
	}
	return nil
}

func (m *moody) Acquire(ctx context.Context) (belfry.Permit, error) {
	return belfry.Permit{}, m.mood(ctx)
}

func (m *moody) Call(ctx context.Context, _ belfry.Permit, _ string) (*stream, error) {
	m.mu.Lock()
	m.running++
	m.peak = max(m.peak, m.running)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.running--
	}()
	return &stream{}, m.mood(ctx)
}

func (m *moody) Release(belfry.Permit) {}
