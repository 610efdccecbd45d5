package balance_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// A room is an endpoint of the stress test: it has so much room, and may fail to say so.
type room struct {
	addr string

	mu      sync.Mutex
	free    int
	held    int
	fails   int // the next Acquires that fail
	waiting []chan struct{}
	out     bool // removed: nobody may ask any more
	late    int  // who did
	closed  int
}

func (r *room) Acquire(ctx context.Context) (belfry.Permit, error) {
	ended := ctx.Err()
	r.mu.Lock()
	if r.out {
		r.late++
	}
	switch {
	case r.fails > 0:
		r.fails--
		r.mu.Unlock()
		return belfry.Permit{}, errLost
	case r.free > 0 && len(r.waiting) == 0:
		r.free--
		r.held++
		r.mu.Unlock()
		return belfry.NewPermit(r), nil
	case ended != nil:
		r.mu.Unlock()
		return belfry.Permit{}, errFull
	}
	turn := make(chan struct{})
	r.waiting = append(r.waiting, turn)
	r.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		if i := slices.Index(r.waiting, turn); i >= 0 {
			r.waiting = slices.Delete(r.waiting, i, i+1)
			return belfry.Permit{}, ctx.Err()
		}
	}
	return belfry.NewPermit(r), nil
}

// allow makes room for n more; that of a call is used up with it.
func (r *room) allow(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += n
	for r.free > 0 && len(r.waiting) > 0 {
		r.free--
		r.held++
		close(r.waiting[0])
		r.waiting = r.waiting[1:]
	}
}

func (r *room) Call(_ context.Context, p belfry.Permit, n int) (int, error) {
	if p.Value() != r {
		return 0, errors.New("a permit of another room")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held--
	if r.closed > 0 {
		return 0, errors.New("a call after Close")
	}
	return n, nil
}

func (r *room) Release(belfry.Permit) {
	r.mu.Lock()
	r.held--
	r.mu.Unlock()
	r.allow(1)
}

func (r *room) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed++
	return nil
}

// A stress is a balancer under random operations, and what is known about it.
type stress struct {
	t       *testing.T
	rand    *rand.Rand
	b       *balancer
	news    chan discover.Change
	live    map[string]*room // by key
	all     []*room          // that are not closed
	made    int
	byAddr  map[string]*room // all
	line    []*waiting
	permits []belfry.Permit
	counts  map[string]int
}

// TestStress has the case BA4: random rounds of up to seven operations each, after which everything must be as it should be.
// BALANCE_ROUNDS sets how many for each metric, BALANCE_SEED repeats a run.
func TestStress(t *testing.T) {
	rounds, seed := 7000, rand.Uint64()
	if testing.Short() {
		rounds = 700
	}
	if n, err := strconv.Atoi(os.Getenv("BALANCE_ROUNDS")); err == nil {
		rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("BALANCE_SEED"), 10, 64); err == nil {
		seed = n
	}
	for i, metric := range []load.Metric{load.Expected{}, load.PeakEWMA{}, load.Pending{}, load.Constant(nil)} {
		bubble(t, "BA4 random operations, seed "+strconv.FormatUint(seed, 10)+", "+strconv.Itoa(i), func(t *testing.T) {
			s := newStress(t, seed+uint64(i), metric)
			defer s.end()
			for round := range rounds {
				for range s.rand.IntN(8) {
					s.operate()
				}
				s.check(round)
				if t.Failed() {
					return
				}
			}
			t.Logf("operations %v", s.counts)
		})
	}
}

func newStress(t *testing.T, seed uint64, metric load.Metric) *stress {
	s := &stress{
		t: t, rand: rand.New(rand.NewPCG(seed, 0)), news: make(chan discover.Change),
		live: map[string]*room{}, byAddr: map[string]*room{}, counts: map[string]int{},
	}
	var mu sync.Mutex
	b, err := balance.New(func(yield func(discover.Change, error) bool) {
		for change := range s.news {
			if change.Addr != "" {
				mu.Lock()
				r := &room{addr: change.Addr}
				s.byAddr[change.Addr] = r
				mu.Unlock()
			}
			if !yield(change, nil) {
				return
			}
		}
	}, func(_ context.Context, _, addr string) (service, error) {
		mu.Lock()
		defer mu.Unlock()
		return s.byAddr[addr], nil
	}, balance.Config{Load: metric, AllowEmpty: true, MaxWait: time.Hour * 1000, Rand: rand.NewPCG(seed, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s.b = b
	return s
}

func (s *stress) operate() {
	s.t.Helper()
	keys := make([]string, 0, len(s.live))
	for key := range s.live {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	some := func() *room { return s.live[keys[s.rand.IntN(len(keys))]] }
	switch op := s.rand.IntN(12); {
	case op == 0 && len(keys) < 8 || len(keys) == 0:
		s.insert(strconv.Itoa(s.made))
		s.made++
	case op == 1:
		key := keys[s.rand.IntN(len(keys))]
		s.counts["remove"]++
		s.news <- discover.Remove(key)
		s.retire(key)
	case op == 2:
		s.counts["fail"]++
		r := some()
		r.mu.Lock()
		r.fails++
		r.mu.Unlock()
	case op <= 6:
		s.counts["allow"]++
		some().allow(1 + s.rand.IntN(2))
	case op == 7:
		s.counts["wait"]++
		ctx, cancel := context.WithCancel(s.t.Context())
		a := &waiting{done: make(chan struct{}), cancel: cancel}
		s.line = append(s.line, a)
		go func() {
			defer close(a.done)
			a.permit, a.err = s.b.Acquire(ctx)
		}()
	case op == 8 && len(s.line) > 0:
		s.counts["cancel"]++
		s.line[s.rand.IntN(len(s.line))].cancel()
	case op == 9 && len(s.permits) > 0:
		s.counts["call"]++
		if res, err := s.b.Call(s.t.Context(), s.pop(), 7); res != 7 || err != nil {
			s.t.Errorf("Call: %d, %v", res, err)
		}
	case op == 10 && len(s.permits) > 0:
		s.counts["release"]++
		s.b.Release(s.pop())
	default:
		s.counts["try"]++
		if permit, err := s.b.Acquire(belfry.NoWait(s.t.Context())); err == nil {
			s.permits = append(s.permits, permit)
		} else if !errors.Is(err, belfry.ErrNotReady) {
			s.t.Errorf("NoWait: %v", err)
		}
	}
	if s.rand.IntN(3) == 0 {
		synctest.Wait()
	}
}

func (s *stress) insert(key string) {
	s.counts["insert"]++
	addr := key + "'"
	s.news <- discover.Change{Key: key, Addr: addr}
	synctest.Wait()
	r := s.byAddr[addr]
	s.all = append(s.all, r)
	s.live[key] = r
}

// retire notes that the balancer has been told to remove key: as soon as it is idle it must not ask there again.
func (s *stress) retire(key string) {
	r := s.live[key]
	delete(s.live, key)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = true
}

func (s *stress) pop() belfry.Permit {
	i := s.rand.IntN(len(s.permits))
	permit := s.permits[i]
	s.permits = slices.Delete(s.permits, i, i+1)
	return permit
}

// check waits until nothing goes on, and looks.
func (s *stress) check(round int) {
	s.t.Helper()
	time.Sleep(time.Minute) // longer than any pause
	synctest.Wait()
	s.collect(round)
	free, sure, held := 0, 0, 0
	for _, r := range s.live {
		free += r.free
		if r.fails == 0 {
			sure += r.free
		}
	}
	for _, r := range s.all {
		held += r.held
		if r.late > 0 {
			s.t.Errorf("round %d: %s was asked %d times after it was removed", round, r.addr, r.late)
		}
		if want := r.out && r.held == 0; want != (r.closed == 1) {
			s.t.Errorf("round %d: %s was closed %d times; removed %v, %d held", round, r.addr, r.closed, r.out, r.held)
		}
	}
	s.all = slices.DeleteFunc(s.all, func(r *room) bool { return r.closed == 1 }) // and stays so: see end
	if held != len(s.permits) {
		s.t.Errorf("round %d: %d held at the endpoints, and %d permits are out", round, held, len(s.permits))
	}
	stats := s.b.Stats()
	if stats.Waiting != len(s.line) || stats.Waiting > 0 && free > 0 {
		s.t.Errorf("round %d: %d wait, want %d, with room for %d", round, stats.Waiting, len(s.line), free)
	}
	reserved := 0
	for _, ep := range stats.Endpoints {
		reserved += ep.Reserved
		if _, live := s.live[ep.Key]; !live && ep.State != balance.Draining {
			s.t.Errorf("round %d: %s is %v after it was removed", round, ep.Key, ep.State)
		}
	}
	if reserved != len(s.permits) {
		s.t.Errorf("round %d: Stats say that %d are reserved, and %d permits are out", round, reserved, len(s.permits))
	}
	permit, err := s.b.Acquire(belfry.NoWait(s.t.Context()))
	if err == nil && free == 0 || err != nil && sure > 0 {
		s.t.Errorf("round %d: room for %d, and Acquire says %v", round, free, err)
	}
	if err == nil {
		s.b.Release(permit)
	}
	for len(s.permits) > 30 {
		s.b.Release(s.pop())
	}
}

// collect takes up what the waiters were given.
func (s *stress) collect(round int) {
	s.line = slices.DeleteFunc(s.line, func(a *waiting) bool {
		select {
		case <-a.done:
		default:
			return false
		}
		a.cancel()
		switch {
		case a.err == nil:
			s.permits = append(s.permits, a.permit)
		case !errors.Is(a.err, context.Canceled):
			s.t.Errorf("round %d: a waiter failed: %v", round, a.err)
		}
		return true
	})
}

// end returns everything, and sees that nothing is left.
func (s *stress) end() {
	for _, a := range s.line {
		a.cancel()
	}
	synctest.Wait()
	s.collect(-1)
	close(s.news)
	if err := s.b.Close(); err != nil {
		s.t.Errorf("Close: %v", err)
	}
	for len(s.permits) > 0 {
		s.b.Release(s.pop())
	}
	synctest.Wait()
	for _, r := range s.byAddr {
		if r.held != 0 || r.closed != 1 || r.late != 0 {
			s.t.Errorf("at the end %s has %d held, was closed %d times and asked %d times after it was removed", r.addr, r.held, r.closed, r.late)
		}
	}
	if n := len(s.b.Stats().Endpoints); n != 0 {
		s.t.Errorf("%d endpoints are left", n)
	}
}

// TestChurn calls from many goroutines while endpoints come, go and move. Every call is answered, by a service that is not closed;
// every service is closed once.
func TestChurn(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	var churned []*churn
	stop := make(chan struct{})
	source := func(yield func(discover.Change, error) bool) {
		random := rand.New(rand.NewPCG(seed, 0))
		ok := yield(discover.Insert("always"), nil)
		for i := 0; ok; i++ {
			select {
			case <-stop:
				return
			default:
			}
			key := strconv.Itoa(random.IntN(6))
			ok = yield(discover.Change{Key: key, Addr: strconv.Itoa(i), Remove: random.IntN(3) == 0}, nil)
			if random.IntN(4) == 0 {
				runtime.Gosched()
			}
		}
	}
	b, err := balance.New(source, func(context.Context, string, string) (service, error) {
		c := &churn{fullAfter: fullAfter{service: echo(), limit: 3}}
		mu.Lock()
		defer mu.Unlock()
		churned = append(churned, c)
		return c, nil
	}, balance.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for g := range 8 {
		callers.Go(func() {
			for i := range 400 {
				permit, err := b.Acquire(t.Context())
				if err != nil {
					t.Errorf("Acquire: %v", err)
					return
				}
				if i%5 == 0 {
					b.Release(permit)
				} else if res, err := b.Call(t.Context(), permit, g*400+i); res != g*400+i || err != nil {
					t.Errorf("%d: %d, %v", i, res, err)
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d services", len(churned))
	for i, c := range churned {
		for c.closed.Load() == 0 { // the last of its calls have it closed in a goroutine of their own
			runtime.Gosched()
		}
		if c.closed.Load() != 1 || c.taken.Load() != 0 || c.late.Load() != 0 {
			t.Errorf("service %d was closed %d times, %d are taken, %d were used after Close", i, c.closed.Load(), c.taken.Load(), c.late.Load())
		}
	}
}

// A churn is a service of TestChurn.
type churn struct {
	fullAfter
	closed, late atomic.Int32
}

func (c *churn) use() {
	if c.closed.Load() > 0 {
		c.late.Add(1)
	}
}

func (c *churn) Call(ctx context.Context, p belfry.Permit, n int) (int, error) {
	defer c.use()
	return c.fullAfter.Call(ctx, p, n)
}

func (c *churn) Release(p belfry.Permit) {
	defer c.use()
	c.fullAfter.Release(p)
}

func (c *churn) Close() error {
	c.closed.Add(1)
	return nil
}
