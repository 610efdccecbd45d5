package belfrytest

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
)

// The layers here each break one rule.

// A broken layer does what its functions do, and passes on what it has none for.
type broken struct {
	belfry.Service[int, int]
	acquire func(ctx context.Context, inner belfry.Service[int, int]) (belfry.Permit, error)
	call    func(ctx context.Context, inner belfry.Service[int, int], permit belfry.Permit, req int) (int, error)
	release func(inner belfry.Service[int, int], permit belfry.Permit)
}

func (b *broken) Acquire(ctx context.Context) (belfry.Permit, error) {
	if b.acquire == nil {
		return b.Service.Acquire(ctx)
	}
	return b.acquire(ctx, b.Service)
}

func (b *broken) Call(ctx context.Context, permit belfry.Permit, req int) (int, error) {
	if b.call == nil {
		return b.Service.Call(ctx, permit, req)
	}
	return b.call(ctx, b.Service, permit, req)
}

func (b *broken) Release(permit belfry.Permit) {
	if b.release == nil {
		b.Service.Release(permit)
		return
	}
	b.release(b.Service, permit)
}

// breaking makes a Builder of a function that sets up a broken layer.
func breaking(set func(b *broken)) Builder {
	return func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		b := &broken{Service: inner}
		set(b)
		return b, nil
	}
}

// misbuilt makes a Builder of a turnstile with faults.
func misbuilt(n int, faults faults) Builder {
	return func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		s := &turnstile{Service: inner, faults: faults, state: make(chan turnstileState, 1)}
		s.state <- turnstileState{free: n}
		return s, nil
	}
}

type planted struct {
	name   string
	rule   int
	build  Builder
	traits []Trait
	stops  bool // it stops the clock, so that what it breaks is all there is to see
}

type (
	inside = belfry.Service[int, int]
	permit = belfry.Permit
)

var plantedLayers = []planted{
	{name: "keeps the answer in the service", rule: 1, build: breaking(func(b *broken) {
		var last atomic.Int64
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			res, err := inner.Call(ctx, p, req)
			last.Store(int64(res))
			<-time.After(time.Millisecond)
			return int(last.Load()), err
		}
	})},
	{name: "keeps the permit in the service", rule: 1, build: breaking(func(b *broken) {
		var last atomic.Pointer[permit]
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			p, err := inner.Acquire(ctx)
			if err == nil {
				last.Store(&p)
			}
			return permit{}, err
		}
		b.call = func(ctx context.Context, inner inside, _ permit, req int) (int, error) {
			return inner.Call(ctx, *last.Load(), req)
		}
		b.release = func(inner inside, _ permit) { inner.Release(*last.Load()) }
	})},

	{name: "leaks on a panic in Call", rule: 2, build: misbuilt(3, faults{leakOnPanic: true}), traits: []Trait{Caps(3)}},
	{name: "leaks when the request fails", rule: 2, build: misbuilt(3, faults{leakOnError: true}), traits: []Trait{Caps(3)}},
	{name: "gives a permit back that Call has spent", rule: 2, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			res, err := inner.Call(ctx, p, req)
			if err != nil {
				inner.Release(p)
			}
			return res, err
		}
	})},
	{name: "tries again on the same permit", rule: 2, traits: []Trait{Retries}, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			res, err := inner.Call(ctx, p, req)
			if err != nil && !errors.Is(err, belfry.ErrRejected) && ctx.Err() == nil {
				res, err = inner.Call(ctx, p, req)
			}
			return res, err
		}
	})},
	{name: "sends a request twice", rule: 2, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			res, err := inner.Call(ctx, p, req)
			if _, failed := errors.AsType[*callError](err); failed {
				if again, refused := inner.Acquire(belfry.NoWait(ctx)); refused == nil {
					return inner.Call(ctx, again, req)
				}
			}
			return res, err
		}
	})},
	{name: "does not spend under a dead context", rule: 2, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			if err := ctx.Err(); err != nil {
				return 0, &belfry.Rejection{Layer: "broken", Err: err}
			}
			return inner.Call(ctx, p, req)
		}
	})},
	{name: "forgets the inner permit", rule: 2, build: breaking(func(b *broken) {
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			_, err := inner.Acquire(ctx)
			return permit{}, err
		}
	})},
	{name: "does not pass a Release on", rule: 2, build: breaking(func(b *broken) {
		b.release = func(inside, permit) {}
	})},
	{name: "wraps a foreign permit", rule: 2, build: breaking(func(b *broken) {
		type probe struct{ inner permit }
		probing := make(chan struct{}, 1)
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			p, err := inner.Acquire(ctx)
			if err != nil || rand.IntN(2) == 0 {
				return p, err
			}
			select {
			case probing <- struct{}{}:
				return belfry.NewPermit(&probe{p}), nil
			default:
				return p, nil
			}
		}
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			if own, ok := p.Value().(*probe); ok { // or that of a layer below
				p = own.inner
				defer func() {
					select {
					case <-probing:
					case <-ctx.Done():
					}
				}()
			}
			return inner.Call(ctx, p, req)
		}
		b.release = func(inner inside, p permit) {
			if own, ok := p.Value().(*probe); ok {
				p = own.inner
				<-probing
			}
			inner.Release(p)
		}
	})},

	{name: "waits under NoWait", rule: 3, build: breaking(func(b *broken) {
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			if isNoWait(ctx) {
				ctx = context.Background()
			}
			return inner.Acquire(ctx)
		}
	})},
	{name: "looks only after a while", rule: 3, build: breaking(func(b *broken) {
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			<-time.After(time.Millisecond)
			return inner.Acquire(ctx)
		}
	})},
	{name: "does not know a derived NoWait", rule: 3, build: breaking(func(b *broken) {
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			if isNoWait(ctx) && ctx != belfry.NoWait(context.Background()) {
				ctx = context.WithoutCancel(ctx)
			}
			return inner.Acquire(ctx)
		}
	})},
	{name: "refuses a free slot under NoWait", rule: 3, build: misbuilt(2, faults{keepOne: true}), traits: []Trait{Caps(2)}},
	{name: "refuses under NoWait with another error", rule: 3, build: breaking(func(b *broken) {
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			p, err := inner.Acquire(ctx)
			if err != nil && isNoWait(ctx) && !errors.Is(err, errAcquire) && !errors.Is(err, errRefused) && !errors.Is(err, belfry.ErrClosed) {
				err = &belfry.Rejection{Layer: "broken", Reason: "busy"}
			}
			return p, err
		}
	})},
	{name: "lets NoWait overtake", rule: 3, build: misbuilt(2, faults{barge: true}), traits: []Trait{Caps(2)}},
	{name: "loses a wake-up on Release", rule: 3, build: misbuilt(2, faults{deafToRelease: true}), traits: []Trait{Caps(2)}},
	{name: "admits more than allowed", rule: 3, build: misbuilt(3, faults{}), traits: []Trait{Caps(2)}},
	{name: "admits without asking", rule: 3, build: newLate},
	{name: "dials for the caller", rule: 3, build: breaking(func(b *broken) {
		var dialled atomic.Bool
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			if !dialled.Load() {
				select {
				case <-time.After(10 * time.Millisecond):
					dialled.Store(true)
				case <-ctx.Done():
					return permit{}, &belfry.Rejection{Layer: "broken", Err: ctx.Err()}
				}
			}
			return inner.Acquire(ctx)
		}
	})},
	{name: "sends late under a dead context", rule: 3, traits: []Trait{Late}, build: breaking(func(b *broken) {
		b.acquire = func(context.Context, inside) (permit, error) { return permit{}, nil }
		b.release = func(inside, permit) {}
		b.call = func(ctx context.Context, inner inside, _ permit, req int) (int, error) {
			p, err := inner.Acquire(ctx)
			if err != nil {
				return 0, belfry.Refuse("broken", err)
			}
			return inner.Call(ctx, p, req)
		}
	})},
	{name: "tries again under a dead context", rule: 3, traits: []Trait{Retries}, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			res, err := inner.Call(ctx, p, req)
			if err == nil || errors.Is(err, belfry.ErrRejected) {
				return res, err
			}
			if p, refused := inner.Acquire(ctx); refused == nil {
				res, again := inner.Call(ctx, p, req)
				if !errors.Is(again, belfry.ErrRejected) {
					return res, again
				}
			}
			return res, err
		}
	})},

	{name: "leaks on cancel", rule: 4, build: misbuilt(2, faults{leakOnCancel: true}), traits: []Trait{Caps(2)}},
	{name: "leaks on a cancel at the moment of the grant", rule: 4, build: misbuilt(2, faults{leakLateCancel: true}), traits: []Trait{Caps(2)}},
	{name: "leaks on a panic in Acquire", rule: 4, build: misbuilt(2, faults{leakOnAcquirePanic: true}), traits: []Trait{Caps(2)}},
	{name: "leaks when the inner Acquire fails", rule: 4, build: misbuilt(2, faults{leakOnAcquireError: true}), traits: []Trait{Caps(2)}},
	{name: "overtakes", rule: 4, build: misbuilt(1, faults{lifo: true}), traits: []Trait{Caps(1)}},

	{name: "does not stop waiting", rule: 5, build: misbuilt(2, faults{deafToCancel: true}), traits: []Trait{Caps(2)}},
	{name: "keeps the context of Acquire", rule: 5, build: breaking(func(b *broken) {
		type keeper struct {
			inner permit
			ctx   context.Context
		}
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			p, err := inner.Acquire(ctx)
			return belfry.NewPermit(&keeper{p, ctx}), err
		}
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			return inner.Call(ctx, p.Value().(*keeper).inner, req)
		}
		b.release = func(inner inside, p permit) {
			k := p.Value().(*keeper)
			_ = k.ctx.Err()
			inner.Release(k.inner)
		}
	})},
	{name: "calls under the context of Acquire", rule: 5, build: breaking(func(b *broken) {
		type keeper struct {
			inner permit
			ctx   context.Context
		}
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			p, err := inner.Acquire(ctx)
			return belfry.NewPermit(&keeper{p, context.WithoutCancel(ctx)}), err
		}
		b.call = func(_ context.Context, inner inside, p permit, req int) (int, error) {
			return inner.Call(p.Value().(*keeper).ctx, p.Value().(*keeper).inner, req)
		}
		b.release = func(inner inside, p permit) { inner.Release(p.Value().(*keeper).inner) }
	})},
	{name: "shields the call from its context", rule: 5, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			return inner.Call(context.WithoutCancel(ctx), p, req)
		}
	})},
	{name: "abandons the call", rule: 5, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			o := apart(func() (int, error) { return inner.Call(ctx, p, req) })
			select {
			case <-o.done:
				return o.result()
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
	})},

	{name: "does not forget an error", rule: 6, build: breaking(func(b *broken) {
		var sticky atomic.Pointer[error]
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			if err := sticky.Load(); err != nil {
				return permit{}, *err
			}
			p, err := inner.Acquire(ctx)
			if err != nil && !errors.Is(err, belfry.ErrRejected) {
				sticky.Store(&err)
			}
			return p, err
		}
	})},
	{name: "says closed for now", rule: 6, build: breaking(func(b *broken) {
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			p, err := inner.Acquire(ctx)
			if errors.Is(err, errAcquire) {
				err = &belfry.Rejection{Layer: "broken", Err: errors.Join(belfry.ErrClosed, err)}
			}
			return p, err
		}
	})},
	{name: "keeps waiting for a closed service", rule: 6, build: breaking(func(b *broken) {
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			p, err := inner.Acquire(ctx)
			if errors.Is(err, belfry.ErrClosed) {
				<-ctx.Done()
			}
			return p, err
		}
	})},
	{name: "asks again without a pause", rule: 6, traits: []Trait{Recovers}, build: breaking(func(b *broken) {
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			for {
				p, err := inner.Acquire(ctx)
				if err == nil || ctx.Err() != nil {
					return p, err
				}
			}
		}
	})},

	{name: "reports a sent request as rejected", rule: 7, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			res, err := inner.Call(ctx, p, req)
			return res, belfry.Refuse("broken", err)
		}
	})},
	{name: "reports a refused second attempt as rejected", rule: 7, traits: []Trait{Retries}, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			res, err := inner.Call(ctx, p, req)
			if err == nil || errors.Is(err, belfry.ErrRejected) || ctx.Err() != nil {
				return res, err
			}
			again, refused := belfry.AcquireLate(ctx, "broken", inner)
			if refused != nil {
				return 0, errors.Join(err, refused)
			}
			return inner.Call(ctx, again, req)
		}
	})},
	{name: "refuses without saying so", rule: 7, build: misbuilt(1, faults{plainRefusal: true}), traits: []Trait{Caps(1)}},
	{name: "refuses without its name", rule: 7, build: misbuilt(1, faults{namelessRefusal: true}), traits: []Trait{Caps(1)}},
	{name: "refuses without a cause", rule: 7, build: misbuilt(1, faults{noCause: true}), traits: []Trait{Caps(1)}},
	{name: "loses why the inner Acquire failed", rule: 7, build: breaking(func(b *broken) {
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			p, err := inner.Acquire(ctx)
			if errors.Is(err, errAcquire) || errors.Is(err, errRefused) {
				err = &belfry.Rejection{Layer: "broken", Err: belfry.ErrNotReady}
			}
			return p, err
		}
	})},
	{name: "loses why the request failed", rule: 7, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			res, err := inner.Call(ctx, p, req)
			if err != nil && !errors.Is(err, belfry.ErrRejected) {
				err = errors.New("call failed")
			}
			return res, err
		}
	})},
	{name: "hides a refusal below", rule: 7, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			res, err := inner.Call(ctx, p, req)
			return res, belfry.Sent(err)
		}
	})},

	{name: "holds a lock during Release", rule: 8, build: breaking(func(b *broken) {
		var mu sync.Mutex
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			mu.Lock()
			mu.Unlock() //nolint:staticcheck // it counts something
			return inner.Acquire(ctx)
		}
		b.release = func(inner inside, p permit) {
			mu.Lock()
			defer mu.Unlock()
			inner.Release(p)
		}
	})},
	{name: "holds a lock during Acquire under NoWait", rule: 8, build: breaking(func(b *broken) {
		var mu sync.RWMutex
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			if isNoWait(ctx) {
				mu.Lock()
				defer mu.Unlock()
			}
			return inner.Acquire(ctx)
		}
	})},
	{name: "holds a lock while it uses a context", rule: 8, build: breaking(func(b *broken) {
		var mu sync.Mutex
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			mu.Lock()
			_ = ctx.Err()
			mu.Unlock()
			return inner.Acquire(ctx)
		}
	})},
	{name: "holds a lock while it leaves the line", rule: 8, build: misbuilt(2, faults{lockToLeave: true}), traits: []Trait{Caps(2)}},
	{name: "holds a lock that Stats needs", rule: 8, build: func(_ testing.TB, inner inside) (inside, func()) {
		return &counted{inside: inner}, nil
	}},
	{name: "holds a lock during Acquire", rule: 8, stops: true, build: breaking(func(b *broken) {
		var mu sync.Mutex
		b.acquire = func(ctx context.Context, inner inside) (permit, error) {
			mu.Lock()
			defer mu.Unlock()
			return inner.Acquire(ctx)
		}
	})},
	{name: "holds a lock during Call", rule: 8, stops: true, build: breaking(func(b *broken) {
		var mu sync.Mutex
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return inner.Call(ctx, p, req)
		}
	})},
	{name: "holds a lock while it waits", rule: 8, stops: true, traits: []Trait{Caps(2)}, build: breaking(func(b *broken) {
		var mu sync.Mutex
		places := make(chan struct{}, 2)
		b.acquire = func(ctx context.Context, _ inside) (permit, error) {
			done, entered := ctx.Done(), false
			mu.Lock()
			select {
			case places <- struct{}{}:
				entered = true
			case <-done:
			}
			mu.Unlock()
			if !entered {
				return permit{}, &belfry.Rejection{Layer: "broken", Err: ctx.Err()}
			}
			return permit{}, nil
		}
		b.call = func(ctx context.Context, inner inside, _ permit, req int) (int, error) {
			defer func() { <-places }()
			p, err := inner.Acquire(ctx)
			if err != nil {
				return 0, err
			}
			return inner.Call(ctx, p, req)
		}
		b.release = func(inside, permit) { <-places }
	})},
	{name: "takes Goexit for a success", rule: 8, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			var res int
			var err error
			done := make(chan any, 1)
			go func() {
				defer func() { done <- recover() }()
				res, err = inner.Call(ctx, p, req)
			}()
			if v := <-done; v != nil {
				panic(v)
			}
			return res, err
		}
	})},
	{name: "takes a panic for a success", rule: 8, build: breaking(func(b *broken) {
		b.call = func(ctx context.Context, inner inside, p permit, req int) (int, error) {
			defer func() { _ = recover() }()
			return inner.Call(ctx, p, req)
		}
	})},
}

// counted counts its calls, and holds the lock of the count while it calls.
type counted struct {
	inside
	mu sync.RWMutex
	n  int
}

func (c *counted) Call(ctx context.Context, p permit, req int) (int, error) {
	c.mu.RLock() // which keeps out only Stats
	defer c.mu.RUnlock()
	return c.inside.Call(ctx, p, req)
}

func (c *counted) Stats() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// apart runs f in a goroutine of its own, and leaves no doubt how it ended.
func apart(f func() (int, error)) *separate {
	s := &separate{done: make(chan struct{})}
	go func() {
		defer func() {
			if s.panicked = recover(); s.panicked == nil && !s.returned {
				s.exited = true
			}
			close(s.done)
		}()
		s.res, s.err = f()
		s.returned = true
	}()
	return s
}

type separate struct {
	done             chan struct{}
	res              int
	err              error
	panicked         any
	exited, returned bool
}

func (s *separate) succeeded() bool { return s.returned && s.err == nil }

func (s *separate) result() (int, error) {
	switch {
	case s.panicked != nil:
		panic(s.panicked)
	case s.exited:
		runtime.Goexit()
	}
	return s.res, s.err
}

func (p planted) suite() *suite {
	s := newSuite(p.build, p.traits)
	s.lockedFor, s.lookEvery = 20, 25*time.Millisecond // it is there to be found
	return s
}

// find tries a few seeds, and more if only chance finds something, or nothing does.
func find(t *testing.T, s *suite) (v *violation) {
	for s.seeds = 3; s.seeds < 500; s.seeds *= 6 {
		if v = s.all(t); v != nil && !v.check.mixed {
			break
		}
	}
	return v
}

// TestPlanted shows that the suite fails every broken layer, and names the rule that it breaks.
func TestPlanted(t *testing.T) {
	for _, p := range plantedLayers {
		t.Run(p.name, func(t *testing.T) {
			v := find(t, p.suite())
			switch {
			case v == nil:
				t.Fatalf("the suite found nothing, want rule %d broken", p.rule)
			case v.rule != p.rule:
				t.Fatalf("the suite found %q, want rule %d broken", v.text, p.rule)
			}
			t.Log(v.text)
		})
	}
}

// TestPlantedOff shows that without the checks of a rule the suite passes exactly the layers that break this one.
func TestPlantedOff(t *testing.T) {
	for rule := 1; rule <= 8; rule++ {
		for _, p := range plantedLayers {
			s := p.suite()
			s.off[rule] = true
			if p.rule != rule {
				s.only = p.rule
				if v := find(t, s); v == nil || v.rule != p.rule {
					t.Errorf("without rule %d, the suite found %v in the layer that %s, want rule %d broken", rule, v, p.name, p.rule)
				}
				continue
			}
			if p.stops {
				continue
			}
			s.seeds = 2
			if v := s.all(t); v != nil {
				t.Errorf("without rule %d, the suite found %q in the layer that %s", rule, v.text, p.name)
			}
		}
	}
}
