package breaker_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/limit"
)

// TestStress mixes everything that can happen to a breaker, looks at whether there ever are two probes, and then for what is
// left. The bubble looks for goroutines.
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
	places := limit.NewLimiter(1 + r.IntN(3))
	in := &moody{r: rand.New(rand.NewPCG(seed, 1))}
	var order []breaker.State
	cfg := breaker.Config{
		Consecutive:  1 + r.IntN(3),
		Ratio:        []float64{0, 0.5}[r.IntN(2)],
		MinCalls:     1 + r.IntN(5),
		MinBackoff:   time.Millisecond,
		MaxBackoff:   20 * time.Millisecond,
		ProbeTimeout: time.Hour,
		Wait:         r.IntN(2) == 0,
		OnChange: func(c breaker.Change) { // it is called once at a time
			if len(order) > 0 && order[len(order)-1] != c.From || c.From == c.To {
				t.Errorf("told of %v to %v after %v", c.From, c.To, order)
			}
			order = append(order, c.To)
		},
	}
	svc := breaker.New[int, int](limit.NewConcurrency[int, int](in, places), cfg)
	var all sync.WaitGroup
	for i := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 2+i))
		all.Go(func() {
			for range 60 {
				once(t, svc, in, r)
			}
		})
	}
	all.Wait()
	synctest.Wait()
	in.calm.Store(true)
	time.Sleep(time.Second) // as long as any pause
	if res, err := belfry.Do(t.Context(), svc, 5); res != 5 || err != nil {
		t.Errorf("a probe in the end got %d, %v", res, err)
	}
	if s := svc.Stats(); s.State != breaker.Closed || s.Waiting != 0 {
		t.Errorf("left behind: %+v", s)
	}
	if s := places.Stats(); s.InFlight+s.Reserved+s.Waiting != 0 {
		t.Errorf("left behind: %+v", s)
	}
	if n := in.probes.Load(); n != 0 {
		t.Errorf("%d probes are out", n)
	}
}

// once does one of the things that callers do.
func once(t *testing.T, svc *service, in *moody, r *rand.Rand) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	how, later := r.IntN(8), time.Duration(r.IntN(5))*time.Millisecond
	time.Sleep(time.Duration(r.IntN(4)) * time.Millisecond)
	switch how {
	case 0:
		time.AfterFunc(later, cancel)
	case 1:
		ctx = belfry.NoWait(ctx)
	}
	quietly(func() {
		permit, err := svc.Acquire(ctx)
		if err != nil {
			time.Sleep(belfry.RetryAfter(err))
			return
		}
		if inner, ok := breaker.Probed(permit); ok {
			inner.Value().(*seat).probe = true
			if n := in.probes.Add(1); n > 1 {
				t.Errorf("%d probes at a time", n)
			}
		}
		time.Sleep(later)
		if how == 2 {
			svc.Release(permit)
			return
		}
		_, _ = svc.Call(t.Context(), permit, 1+r.IntN(100))
	})
}

// A moody service does anything.
type moody struct {
	mu     sync.Mutex
	r      *rand.Rand
	calm   atomic.Bool
	probes atomic.Int64 // permits of probes that are out
}

// A seat is what its permits remember.
type seat struct{ probe bool }

// left notes that a permit is used up, before the breaker does.
func (m *moody) left(permit belfry.Permit) {
	if permit.Value().(*seat).probe {
		m.probes.Add(-1)
	}
}

func (m *moody) draw(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.r.IntN(n)
}

func (m *moody) Acquire(context.Context) (belfry.Permit, error) {
	if m.calm.Load() {
		return belfry.NewPermit(&seat{}), nil
	}
	time.Sleep(time.Duration(m.draw(3)) * time.Millisecond)
	switch m.draw(12) {
	case 0:
		return belfry.Permit{}, errIll
	case 1:
		panic("oh")
	case 2:
		runtime.Goexit()
	}
	return belfry.NewPermit(&seat{}), nil
}

func (m *moody) Call(_ context.Context, permit belfry.Permit, req int) (int, error) {
	defer m.left(permit)
	if m.calm.Load() {
		return req, nil
	}
	time.Sleep(time.Duration(m.draw(3)) * time.Millisecond)
	switch m.draw(8) {
	case 0, 1, 2:
		return 0, errIll
	case 3:
		return 0, context.Canceled
	case 4:
		panic("oh")
	case 5:
		runtime.Goexit()
	}
	return req, nil
}

func (m *moody) Release(permit belfry.Permit) { m.left(permit) }
