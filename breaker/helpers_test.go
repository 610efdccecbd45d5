package breaker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/breaker"
)

type service = breaker.Service[int, int]

var errIll = errors.New("ill")

// bubble runs a case in a bubble.
func bubble(t *testing.T, name string, run func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
}

// after lets time pass, and a hair more, so that what was due then is done.
func after(d time.Duration) {
	time.Sleep(d + time.Nanosecond)
	synctest.Wait()
}

// exact is a Config without chance.
var exact = breaker.Config{Consecutive: 2, Rand: chance(0)}

func with(change func(*breaker.Config)) breaker.Config {
	cfg := exact
	change(&cfg)
	return cfg
}

// chance is a source of random numbers that always returns the same fraction.
type chance float64

func (c chance) Uint64() uint64 { return uint64(float64(c) * (1 << 53)) }

// An inner is what a breaker stands before: it does what it is told, and counts.
type inner struct {
	mu    sync.Mutex
	does  func(ctx context.Context, req int) (int, error)
	calls int
}

func (i *inner) call(ctx context.Context, req int) (int, error) {
	i.mu.Lock()
	i.calls++
	does := i.does
	i.mu.Unlock()
	if does == nil {
		return req, nil
	}
	return does(ctx, req)
}

func (i *inner) becomes(does func(ctx context.Context, req int) (int, error)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.does = does
}

func (i *inner) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls
}

func ill(context.Context, int) (int, error) { return 0, errIll }

// newService is a breaker over an inner that is well.
func newService(cfg breaker.Config, sem ...belfry.Semantics[int, int]) (*service, *inner) {
	i := &inner{}
	return breaker.New(belfry.Of(i.call), cfg, sem...), i
}

// opened is a breaker that n failures have opened, over an inner that is well.
func opened(t *testing.T, cfg breaker.Config) (*service, *inner) {
	t.Helper()
	svc, i := newService(cfg)
	i.becomes(ill)
	for range max(cfg.Consecutive, 1) {
		_, _ = belfry.Do(t.Context(), svc, 1)
	}
	wantState(t, svc, breaker.Open)
	i.becomes(nil)
	return svc, i
}

func wantState(t *testing.T, svc *service, want breaker.State) {
	t.Helper()
	if got := svc.Stats().State; got != want {
		t.Fatalf("it is %v, want %v", got, want)
	}
}

func served(t *testing.T, svc belfry.Service[int, int]) {
	t.Helper()
	if res, err := belfry.Do(t.Context(), svc, 7); res != 7 || err != nil {
		t.Fatalf("got %d, %v", res, err)
	}
}

// refused acquires in vain, and returns why.
func refused(t *testing.T, svc belfry.Service[int, int], ctx context.Context) belfry.Rejection {
	t.Helper()
	_, err := svc.Acquire(ctx)
	r, ok := errors.AsType[*belfry.Rejection](err)
	if !ok || r.Layer != "breaker" {
		t.Fatalf("got %v, want a refusal of the breaker", err)
	}
	return *r
}

func mustAcquire(t *testing.T, svc belfry.Service[int, int]) belfry.Permit {
	t.Helper()
	permit, err := svc.Acquire(belfry.NoWait(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return permit
}
