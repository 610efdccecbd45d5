package pool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/pool"
)

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// elapse lets virtual time pass, and happen what then does. Outside a bubble it panics.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var errBoom = errors.New("boom")

// A shop makes servers.
type shop struct {
	mu    sync.Mutex
	all   []*server
	fails error
}

func (s *shop) make(key string) (belfry.Service[string, string], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return nil, s.fails
	}
	srv := &server{name: fmt.Sprintf("%s%d", key, len(s.all))}
	s.all = append(s.all, srv)
	return srv, nil
}

// open returns the names of servers that are not closed.
func (s *shop) open() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, srv := range s.all {
		if srv.closes() == 0 {
			names = append(names, srv.name)
		}
	}
	return strings.Join(names, " ")
}

// A server answers with its name. A request "wait" lasts until its context ends.
type server struct {
	name string

	mu     sync.Mutex
	closed int
	used   int
}

func (s *server) closes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *server) use(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used += n
	if s.closed > 0 {
		panic("used after it was closed")
	}
}

func (s *server) Acquire(context.Context) (belfry.Permit, error) {
	s.use(1)
	return belfry.Permit{}, nil
}
func (s *server) Release(belfry.Permit) { s.use(-1) }

func (s *server) Call(ctx context.Context, _ belfry.Permit, req string) (string, error) {
	defer s.use(-1)
	if req == "wait" {
		<-ctx.Done()
	}
	return s.name, nil
}

func (s *server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	if s.used > 0 {
		panic("closed in use")
	}
	return fmt.Errorf("%s: %w", s.name, errBoom)
}

type services = *pool.Pool[string, string, string]

// want sends a request to key and compares which server has answered.
func want(t *testing.T, p services, key, name string) {
	t.Helper()
	if got, err := belfry.Do(t.Context(), p.Get(key), "x"); got != name || err != nil {
		t.Errorf("%s: got %q, %v, want %q", key, got, err, name)
	}
	synctest.Wait()
}

// hold begins a call to key, and returns what ends it.
func hold(t *testing.T, p services, key string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = belfry.Do(ctx, p.Get(key), "wait")
	}()
	synctest.Wait()
	return func() { cancel(); <-done; synctest.Wait() }
}

func TestPool(t *testing.T) {
	bubble(t, "MK1 the same key gives the same service", func(t *testing.T) {
		s := &shop{}
		p := pool.New(s.make, pool.Config{})
		defer p.Close()
		if p.Get("a") != p.Get("a") || p.Get("a") == p.Get("b") {
			t.Error("services are told apart wrongly")
		}
		if s.open() != "" {
			t.Error("made before it was used")
		}
		want(t, p, "a", "a0")
		want(t, p, "b", "b1")
		want(t, p, "a", "a0")
	})
	bubble(t, "what nobody uses is dropped after a while", func(t *testing.T) {
		s := &shop{}
		p := pool.New(s.make, pool.Config{Idle: time.Minute})
		defer p.Close()
		want(t, p, "a", "a0")
		elapse(30 * time.Second)
		want(t, p, "b", "b1")
		elapse(30*time.Second - 1)
		if got := s.open(); got != "a0 b1" {
			t.Errorf("open: %s", got)
		}
		elapse(1)
		if got := s.open(); got != "b1" {
			t.Errorf("open: %s", got)
		}
		end := hold(t, p, "b")
		elapse(time.Hour)
		if got := s.open(); got != "b1" {
			t.Errorf("open: %s, want what is in use", got)
		}
		end()
		elapse(time.Minute - 1)
		if got := s.open(); got != "b1" {
			t.Errorf("open: %s, want it kept for a minute after its use", got)
		}
		elapse(1)
		if got := s.open(); got != "" {
			t.Errorf("open: %s", got)
		}
		if got := p.Stats(); got != (pool.Stats{Made: 2, Expired: 2}) {
			t.Errorf("got %+v", got)
		}
		want(t, p, "a", "a2")
	})
	bubble(t, "at the bound the one gives way that was idle for longest", func(t *testing.T) {
		s := &shop{}
		p := pool.New(s.make, pool.Config{Max: 3})
		defer p.Close()
		want(t, p, "a", "a0")
		want(t, p, "b", "b1")
		end := hold(t, p, "c")
		want(t, p, "a", "a0")
		want(t, p, "d", "d3")
		if got := s.open(); got != "a0 c2 d3" {
			t.Errorf("open: %s", got)
		}
		if got := p.Stats(); got != (pool.Stats{Services: 3, Idle: 2, Made: 4, Evicted: 1}) {
			t.Errorf("got %+v", got)
		}
		end()
	})
	bubble(t, "if none is idle the next is refused", func(t *testing.T) {
		s := &shop{}
		p := pool.New(s.make, pool.Config{Max: 2})
		defer p.Close()
		end := hold(t, p, "a")
		permit, err := p.Get("b").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = belfry.Do(t.Context(), p.Get("c"), "x")
		r, _ := errors.AsType[*belfry.Rejection](err)
		if r == nil || r.Reason != "full" || r.InFlight != 2 || r.Limit != 2 || !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
		if got := p.Stats(); got.Rejected != 1 || got.Services != 2 || got.Idle != 0 {
			t.Errorf("got %+v", got)
		}
		want(t, p, "a", "a0") // who is there already is served
		p.Get("b").Release(permit)
		want(t, p, "c", "c2")
		if got := s.open(); got != "a0 c2" {
			t.Errorf("open: %s", got)
		}
		end()
	})
	bubble(t, "one that is evicted in use is closed by its last call", func(t *testing.T) {
		s := &shop{}
		p := pool.New(s.make, pool.Config{})
		defer p.Close()
		first, second := hold(t, p, "a"), hold(t, p, "a")
		if !p.Evict("a") || p.Evict("a") || p.Evict("b") {
			t.Error("it does not know what is there")
		}
		want(t, p, "a", "a1")
		if got := p.Stats(); got != (pool.Stats{Services: 1, Idle: 1, Draining: 1, Made: 2, Evicted: 1}) {
			t.Errorf("got %+v", got)
		}
		first()
		if got := s.open(); got != "a0 a1" {
			t.Errorf("open: %s", got)
		}
		second()
		if got := s.open(); got != "a1" {
			t.Errorf("open: %s", got)
		}
		if got := p.Stats(); got.Draining != 0 {
			t.Errorf("got %+v", got)
		}
		if !p.Evict("a") || s.open() != "" {
			t.Error("an idle one is not closed")
		}
	})
	bubble(t, "Close refuses, closes what is idle, and lets calls go on", func(t *testing.T) {
		s := &shop{}
		p := pool.New(s.make, pool.Config{})
		want(t, p, "a", "a0")
		end := hold(t, p, "b")
		if err := p.Close(); err == nil || err.Error() != "a0: boom" {
			t.Errorf("got %v", err)
		}
		if got := s.open(); got != "b1" {
			t.Errorf("open: %s", got)
		}
		if _, err := belfry.Do(t.Context(), p.Get("a"), "x"); !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("got %v", err)
		}
		end()
		if got := s.open(); got != "" {
			t.Errorf("open: %s", got)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "a streamed call is a use", func(t *testing.T) {
		s := &shop{}
		var done func()
		p := pool.New(s.make, pool.Config{Idle: time.Minute}, belfry.Semantics[string, string]{
			Until: func(res string, d func()) string { done = d; return res },
		})
		want(t, p, "a", "a0")
		elapse(time.Hour)
		if got := s.open(); got != "a0" {
			t.Errorf("open: %s", got)
		}
		done()
		elapse(time.Minute)
		if got := s.open(); got != "" {
			t.Errorf("open: %s", got)
		}
	})
	bubble(t, "by the request", func(t *testing.T) {
		s := &shop{}
		p := pool.New(s.make, pool.Config{Max: 1})
		defer p.Close()
		svc := p.Service(func(req string) string { return req[:1] })
		for _, want := range []string{"a0", "a0", "b1"} {
			if got, err := belfry.Do(t.Context(), svc, want); got != want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
		synctest.Wait()
		if got := s.open(); got != "b1" {
			t.Errorf("open: %s", got)
		}
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		svc.Release(permit)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := svc.Call(ctx, permit, "c"); !errors.Is(err, belfry.ErrRejected) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if s.open() != "b1" {
			t.Error("something was made for a call that was over")
		}
	})
}

func TestMake(t *testing.T) {
	bubble(t, "its error is that of those who wait, and the next tries again", func(t *testing.T) {
		s := &shop{fails: errBoom}
		p := pool.New(s.make, pool.Config{})
		defer p.Close()
		_, err := belfry.Do(t.Context(), p.Get("a"), "x")
		if !errors.Is(err, errBoom) || !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
		if got := p.Stats(); got != (pool.Stats{}) {
			t.Errorf("got %+v", got)
		}
		s.fails = nil
		want(t, p, "a", "a0")
	})
	bubble(t, "it is called once for all, who wait as their contexts allow", func(t *testing.T) {
		s := &shop{}
		calls := 0
		p := pool.New(func(key string) (belfry.Service[string, string], error) {
			calls++
			time.Sleep(time.Second)
			return s.make(key)
		}, pool.Config{})
		defer p.Close()
		first := hold(t, p, "a")
		second := hold(t, p, "a")
		if _, err := belfry.TryDo(t.Context(), p.Get("a"), "x"); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := belfry.Do(ctx, p.Get("a"), "x"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, belfry.ErrRejected) {
			t.Errorf("got %v", err)
		}
		want(t, p, "a", "a0")
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
		if got := p.Stats(); got.Idle != 0 {
			t.Errorf("got %+v", got)
		}
		first()
		second()
		if got := p.Stats(); got.Idle != 1 {
			t.Errorf("got %+v", got)
		}
	})
	bubble(t, "evicted while it is made, it is closed after its use", func(t *testing.T) {
		s := &shop{}
		p := pool.New(func(key string) (belfry.Service[string, string], error) {
			time.Sleep(time.Second)
			return s.make(key)
		}, pool.Config{})
		end := hold(t, p, "a")
		_ = p.Close()
		elapse(time.Second)
		if s.open() != "a0" {
			t.Error("closed in use")
		}
		end()
		if s.open() != "" {
			t.Error("left open")
		}
	})
	bubble(t, "a panic is the caller's, and leaves nothing", func(t *testing.T) {
		s := &shop{}
		var end func()
		p := pool.New(func(key string) (belfry.Service[string, string], error) {
			time.Sleep(time.Second)
			if end != nil {
				end()
			}
			return s.make(key)
		}, pool.Config{Max: 1})
		defer p.Close()
		for _, f := range []func(){func() { panic(errBoom) }, runtime.Goexit} {
			end = f
			var got any
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { got = recover() }()
				_, _ = belfry.Do(t.Context(), p.Get("a"), "x")
			}()
			synctest.Wait()
			_, err := belfry.Do(t.Context(), p.Get("a"), "x") // who waits
			<-ended
			if err == nil || !strings.Contains(err.Error(), "make did not return") || got != nil && got != errBoom {
				t.Errorf("got %v, and who waits %v", got, err)
			}
			if got := p.Stats(); got != (pool.Stats{}) {
				t.Errorf("got %+v", got)
			}
		}
		end = nil
		want(t, p, "b", "b0")
	})
	bubble(t, "neither a service nor an error is an error", func(t *testing.T) {
		p := pool.New(func(string) (belfry.Service[string, string], error) { return nil, nil }, pool.Config{})
		if _, err := belfry.Do(t.Context(), p.Get("a"), "x"); err == nil || !strings.Contains(err.Error(), "neither") {
			t.Errorf("got %v", err)
		}
	})
}

// Whatever is done, nothing is closed in use, used when closed, closed twice or left open (server panics, or shop tells).
func TestRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		p := pool.New(s.make, pool.Config{Max: 4, Idle: 50 * time.Millisecond})
		var wg sync.WaitGroup
		for worker := range uint64(8) {
			r := rand.New(rand.NewPCG(seed, worker))
			wg.Go(func() {
				for range 2000 {
					key := string(rune('a' + r.IntN(8)))
					switch r.IntN(20) {
					case 0:
						p.Evict(key)
					case 1:
						time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
					default:
						permit, err := p.Get(key).Acquire(t.Context())
						if err != nil {
							continue
						}
						time.Sleep(time.Duration(r.IntN(2)) * time.Millisecond)
						if r.IntN(2) == 0 {
							p.Get(key).Release(permit)
						} else if _, err := p.Get(key).Call(t.Context(), permit, "x"); err != nil {
							t.Error(err)
						}
					}
					if n := p.Stats().Services; n > 4 {
						t.Errorf("%d services", n)
					}
				}
			})
		}
		wg.Wait()
		if _, err := belfry.Do(t.Context(), p.Get("last"), "x"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // the last expires, if nothing has before
		_ = p.Close()
		synctest.Wait()
		for _, srv := range s.all {
			if srv.closed != 1 || srv.used != 0 {
				t.Fatalf("%s was closed %d times, with %d users", srv.name, srv.closed, srv.used)
			}
		}
		if got := p.Stats(); got.Services != 0 || got.Idle != 0 || got.Draining != 0 || got.Evicted == 0 || got.Expired == 0 || got.Rejected == 0 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestContract(t *testing.T) {
	make := func(inner belfry.Service[int, int]) *pool.Pool[int, int, int] {
		return pool.New(func(int) (belfry.Service[int, int], error) { return inner, nil }, pool.Config{Max: 2, Idle: time.Second})
	}
	t.Run("of one key", func(t *testing.T) {
		belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
			p := make(inner)
			return p.Get(1), func() { _ = p.Close() }
		})
	})
	t.Run("by the request", func(t *testing.T) {
		belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
			p := make(inner)
			return p.Service(func(req int) int { return req % 2 }), func() { _ = p.Close() }
		}, belfrytest.Late)
	})
}

func TestValidate(t *testing.T) {
	if err := (pool.Config{Max: 1, Idle: 1}).Validate(); err != nil {
		t.Error(err)
	}
	for want, cfg := range map[string]pool.Config{
		"pool: max must be at least 1, or 0 for the default, got -1": {Max: -1},
		"pool: idle must be above 0, or 0 for the default, got -1ns": {Idle: -1},
	} {
		if err := cfg.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
		if v := panics(func() { pool.New((&shop{}).make, cfg) }); fmt.Sprint(v) != want {
			t.Errorf("New panics with %v, want %q", v, want)
		}
	}
	for want, f := range map[string]func(){
		"pool: make must not be nil":            func() { pool.New[int, int, int](nil, pool.Config{}) },
		"pool: key must not be nil":             func() { pool.New((&shop{}).make, pool.Config{}).Service(nil) },
		"pool: the permit is not one of a Pool": func() { pool.New((&shop{}).make, pool.Config{}).Get("").Release(belfry.NewPermit(1)) },
	} {
		if v := panics(f); fmt.Sprint(v) != want {
			t.Errorf("panics with %v, want %q", v, want)
		}
	}
}

func panics(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}
