package hedge_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/hedge"
)

// TestStress mixes everything that can happen to attempts, and looks at who gets which answer, and then for what is left: permits,
// documents that nobody has closed, and goroutines, for which the bubble looks.
func TestStress(t *testing.T) {
	var won, panicked atomic.Uint64
	for range 20 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			s := newStress(t, seed)
			s.run(rand.New(rand.NewPCG(seed, 1)))
			won.Add(s.svc.Stats().Won)
			panicked.Add(s.svc.Stats().Panics)
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if won.Load() == 0 || panicked.Load() == 0 {
		t.Errorf("%d hedges won, %d losers panicked; want some", won.Load(), panicked.Load())
	}
}

// A page is a response of the stress test. It says whom it answers.
type page struct {
	req    int
	broken bool
	ctx    context.Context
	done   func()
	closed atomic.Int32
}

// A stress is a hedge over a service that does anything, and what is known about it.
type stress struct {
	t     *testing.T
	svc   *hedge.Service[int, *page]
	calls int

	mu         sync.Mutex
	random     *rand.Rand
	held, most int // permits that are out
	pages      []*page
	sent       map[int]int // attempts by request
}

func newStress(t *testing.T, seed uint64) *stress {
	r := rand.New(rand.NewPCG(seed, 0))
	s := &stress{t: t, random: r, most: 4 + r.IntN(12), calls: 60, sent: map[int]int{}}
	cfg := hedge.Config{MaxHedges: 1 + r.IntN(3), Budget: budget.Unlimited(), OnHedge: func(hedge.Event) {
		if r := s.draw(40); r == 0 {
			panic("a hook")
		}
	}}
	switch r.IntN(3) {
	case 0:
		cfg.Delay = 3 * ms
	default:
		cfg.Percentile, cfg.MinSamples, cfg.Period = 0.8, 5, 50*ms
	}
	switch r.IntN(3) {
	case 0:
		cfg.WaitLosers = true
	case 1:
		cfg.Detach = true
	}
	s.svc = hedge.New[int, *page](s, cfg, belfry.Semantics[int, *page]{
		Classify: func(p *page, err error) belfry.Outcome {
			if err == nil && p.broken {
				return belfry.Outcome{Kind: belfry.Failure}
			}
			return belfry.ClassifyError(err)
		},
		Copy:       func(req int) (int, bool) { return req, req%9 != 0 },
		Idempotent: func(req int) bool { return req%7 != 0 },
		Until:      func(p *page, done func()) *page { p.done = done; return p },
		Discard:    func(p *page) { s.close(p) },
	})
	return s
}

func (s *stress) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// Acquire never waits: a hedge does not queue, and what becomes of those who do is for other tests.
func (s *stress) Acquire(context.Context) (belfry.Permit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held >= s.most {
		return belfry.Permit{}, &belfry.Rejection{Layer: "stress", Reason: "full", Err: belfry.ErrNotReady}
	}
	s.held++
	return belfry.NewPermit(s), nil
}

func (s *stress) Release(belfry.Permit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
}

func (s *stress) Call(ctx context.Context, permit belfry.Permit, req int) (*page, error) {
	defer s.Release(permit)
	s.mu.Lock()
	s.sent[req]++
	takes, ends, deaf := time.Duration(s.random.IntN(12))*ms, s.random.IntN(12), s.random.IntN(4) == 0
	s.mu.Unlock()
	if deaf {
		time.Sleep(takes)
	} else if _, err := answers(takes, "")(ctx); err != nil {
		return nil, err
	}
	switch ends {
	case 0:
		panic("an attempt")
	case 1:
		runtime.Goexit()
	case 2, 3:
		return nil, errBoom
	}
	p := &page{req: req, broken: ends == 4, ctx: ctx}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = append(s.pages, p)
	return p, nil
}

func (s *stress) close(p *page) {
	if p.closed.Add(1) == 1 && p.done != nil {
		p.done()
	}
}

func (s *stress) run(r *rand.Rand) {
	var callers sync.WaitGroup
	var ended atomic.Int32
	for g := range 8 {
		r := rand.New(rand.NewPCG(r.Uint64(), 0))
		callers.Go(func() {
			for i := range s.calls {
				over := make(chan struct{})
				go func() {
					defer close(over)
					defer ended.Add(1)
					defer func() { _ = recover() }()
					s.once(1+g*s.calls+i, r)
				}()
				<-over
			}
		})
	}
	callers.Wait()
	time.Sleep(time.Second) // the losers
	synctest.Wait()
	if n := int(ended.Load()); n != 8*s.calls {
		s.t.Errorf("%d calls ended of %d", n, 8*s.calls)
	}
	if s.held != 0 {
		s.t.Errorf("%d permits are out", s.held)
	}
	for _, p := range s.pages {
		if n := p.closed.Load(); n != 1 {
			s.t.Errorf("a response to %d was closed %d times", p.req, n)
		}
	}
}

// once makes one call, and leaves it perhaps.
func (s *stress) once(req int, r *rand.Rand) {
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	if r.IntN(5) == 0 {
		defer time.AfterFunc(time.Duration(r.IntN(10))*ms, cancel).Stop()
	}
	p, err := belfry.Do(ctx, s.svc, req)
	s.mu.Lock()
	sent := s.sent[req]
	s.mu.Unlock()
	switch {
	case err != nil && p != nil:
		s.t.Errorf("request %d got a response and %v", req, err)
	case errors.Is(err, belfry.ErrRejected) != (sent == 0):
		if ctx.Err() == nil {
			s.t.Errorf("request %d was sent %d times, and got %v", req, sent, err)
		}
	case (req%9 == 0 || req%7 == 0) && sent > 1:
		s.t.Errorf("request %d must not be sent twice, and was sent %d times", req, sent)
	case err == nil && p.req != req:
		s.t.Errorf("request %d got the response to %d", req, p.req)
	}
	if p == nil {
		return
	}
	time.Sleep(time.Duration(r.IntN(3)) * ms) // it is read
	if p.ctx.Err() != nil && ctx.Err() == nil {
		s.t.Errorf("request %d: its attempt's context has ended before its response: %v", req, context.Cause(p.ctx))
	}
	s.close(p)
}
