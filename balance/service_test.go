package balance_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/discover"
)

type (
	service  = belfry.Service[int, int]
	balancer = balance.Balancer[int, int]
)

// An update is what a source may say.
type update struct {
	discover.Change
	err error
}

// A world is a balancer with the test as its source, and as the backend behind every address.
type world struct {
	*balancer
	t    *testing.T
	news chan update
	dial func(ctx context.Context, key, addr string) (service, error) // nil: a backend

	mu       sync.Mutex
	backends map[string]*belfrytest.Backend[int, int]
	services map[string]service
	dials    []string
	events   []balance.Event
}

// newWorld starts a world in a bubble.
func newWorld(t *testing.T, cfg balance.Config, sem ...belfry.Semantics[int, int]) *world {
	t.Helper()
	return newWorldOf(t, &world{}, cfg, sem...)
}

func newWorldOf(t *testing.T, w *world, cfg balance.Config, sem ...belfry.Semantics[int, int]) *world {
	t.Helper()
	w.t, w.news = t, make(chan update)
	w.backends, w.services = map[string]*belfrytest.Backend[int, int]{}, map[string]service{}
	cfg.OnEvent = func(e balance.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}
	b, err := balance.New(w.source(), w.dialAny, cfg, sem...)
	if err != nil {
		t.Fatal(err)
	}
	w.balancer = b
	t.Cleanup(func() {
		w.end()
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return w
}

func (w *world) source() iter.Seq2[discover.Change, error] {
	news := w.news
	return func(yield func(discover.Change, error) bool) {
		for u := range news {
			if !yield(u.Change, u.err) {
				return
			}
		}
	}
}

// end ends the source.
func (w *world) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.news != nil {
		close(w.news)
		w.news = nil
	}
}

func (w *world) dialAny(ctx context.Context, key, addr string) (service, error) {
	w.mu.Lock()
	w.dials = append(w.dials, addr)
	svc, ok := w.services[addr]
	w.mu.Unlock()
	if w.dial != nil {
		return w.dial(ctx, key, addr)
	}
	if !ok {
		return nil, fmt.Errorf("nobody at %s", addr)
	}
	return svc, nil
}

// backend returns the backend at addr, which it makes if there is none.
func (w *world) backend(addr string) *belfrytest.Backend[int, int] {
	w.mu.Lock()
	known := w.backends[addr]
	w.mu.Unlock()
	if known != nil {
		return known
	}
	made, svc := belfrytest.NewBackend[int, int](w.t) // not under mu: it waits for the bubble
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backends[addr], w.services[addr] = made, svc
	return made
}

// add inserts endpoints, with a backend each, and waits until they have been dialled.
func (w *world) add(addrs ...string) {
	w.t.Helper()
	for _, addr := range addrs {
		w.backend(addr)
		w.say(discover.Insert(addr), nil)
	}
	synctest.Wait()
}

func (w *world) remove(keys ...string) {
	w.t.Helper()
	for _, key := range keys {
		w.say(discover.Remove(key), nil)
	}
	synctest.Wait()
}

func (w *world) say(change discover.Change, err error) { w.news <- update{change, err} }

// reserve acquires, and returns the permit and the address that it is for.
func (w *world) reserve() (belfry.Permit, string) {
	w.t.Helper()
	synctest.Wait()
	before := w.held()
	permit, err := w.Acquire(belfry.NoWait(w.t.Context()))
	if err != nil {
		w.t.Fatalf("Acquire: %v", err)
	}
	for addr, n := range w.held() {
		if n > before[addr] {
			return permit, addr
		}
	}
	w.t.Fatal("nobody has granted the permit")
	return belfry.Permit{}, ""
}

func (w *world) held() map[string]int {
	w.mu.Lock()
	backends := maps.Clone(w.backends)
	w.mu.Unlock()
	held := map[string]int{}
	for addr, b := range backends {
		held[addr] = b.Held()
	}
	return held
}

// refused acquires without waiting, in vain, and returns the error.
func (w *world) refused() error {
	w.t.Helper()
	synctest.Wait()
	permit, err := w.Acquire(belfry.NoWait(w.t.Context()))
	if err == nil {
		w.Release(permit)
		w.t.Fatal("Acquire was granted, and should have been refused")
	}
	if !errors.Is(err, belfry.ErrRejected) {
		w.t.Fatalf("%v does not match ErrRejected", err)
	}
	return err
}

// wantRefused fails unless an Acquire that does not wait is refused.
func (w *world) wantRefused() {
	w.t.Helper()
	_ = w.refused()
}

// A waiting is an Acquire in a goroutine of its own.
type waiting struct {
	w      *world
	done   chan struct{}
	took   time.Duration
	permit belfry.Permit
	err    error
	cancel context.CancelFunc
}

func (w *world) wait() *waiting {
	ctx, cancel := context.WithCancel(w.t.Context())
	a := &waiting{w: w, done: make(chan struct{}), cancel: cancel}
	begun := time.Now()
	go func() {
		defer close(a.done)
		a.permit, a.err = w.Acquire(ctx)
		a.took = time.Since(begun)
	}()
	synctest.Wait()
	return a
}

func (a *waiting) returned() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// wantWaiting fails unless a still waits.
func (a *waiting) wantWaiting() {
	a.w.t.Helper()
	if a.returned() {
		a.w.t.Fatalf("Acquire returned (error %v), and should have waited", a.err)
	}
}

// wantGranted fails unless a has a permit by now.
func (a *waiting) wantGranted() {
	a.w.t.Helper()
	if !a.returned() || a.err != nil {
		a.w.t.Fatalf("Acquire has no permit by now (error %v)", a.err)
	}
}

// wantError is wantFailed, and returns the error.
func (a *waiting) wantError() error {
	a.w.t.Helper()
	if !a.returned() || a.err == nil {
		a.w.t.Fatal("Acquire has not failed by now")
	}
	return a.err
}

// wantFailed fails unless a has failed by now.
func (a *waiting) wantFailed() {
	a.w.t.Helper()
	_ = a.wantError()
}

// answer spends permit on req and lets the backend at addr answer it.
func (w *world) answer(permit belfry.Permit, addr string, req int) {
	w.t.Helper()
	done := w.call(permit, req)
	w.backend(addr).Expect(req).Answer(-req)
	wantEnd(w.t, done, nil)
}

func (w *world) call(permit belfry.Permit, req int) (done chan error) {
	done = make(chan error, 1)
	go func() {
		_, err := w.Call(w.t.Context(), permit, req)
		done <- err
	}()
	synctest.Wait()
	return done
}

// wantEnd waits for a call, and fails if its error does not match want.
func wantEnd(t *testing.T, done chan error, want error) {
	t.Helper()
	if err := <-done; !errors.Is(err, want) {
		t.Errorf("Call returned %v, want %v", err, want)
	}
}

// do makes a call that addr is to answer.
func (w *world) do(addr string, req int) {
	w.t.Helper()
	permit, at := w.reserve()
	if at != addr {
		w.t.Fatalf("%s was chosen, want %s", at, addr)
	}
	w.answer(permit, addr, req)
}

// states returns the endpoints' states by address, like "a:ready b:draining".
func (w *world) states() string {
	synctest.Wait()
	var parts []string
	for _, ep := range w.Stats().Endpoints {
		parts = append(parts, ep.Addr+":"+ep.State.String())
	}
	return strings.Join(parts, " ")
}

func (w *world) wantStates(want string) {
	w.t.Helper()
	if got := w.states(); got != want {
		w.t.Fatalf("endpoints are %q, want %q", got, want)
	}
}

// endpoint returns the stats of the endpoint at addr.
func (w *world) endpoint(addr string) balance.EndpointStats {
	w.t.Helper()
	synctest.Wait()
	stats := w.Stats()
	i := slices.IndexFunc(stats.Endpoints, func(ep balance.EndpointStats) bool { return ep.Addr == addr })
	if i < 0 {
		w.t.Fatalf("%s is not listed", addr)
	}
	return stats.Endpoints[i]
}

// count returns how many events of kind there were about addr.
func (w *world) count(kind balance.EventKind, addr string) int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.events {
		if e.Kind == kind && e.Addr == addr {
			n++
		}
	}
	return n
}

// noEndpoints finds the NoEndpointsError in err.
func noEndpoints(t *testing.T, err error) *balance.NoEndpointsError {
	t.Helper()
	e, ok := errors.AsType[*balance.NoEndpointsError](err)
	if !ok {
		t.Fatalf("%v has no NoEndpointsError", err)
	}
	return e
}

// closing is a service that can be closed.
type closing struct {
	service
	close func() error
}

func (c closing) Close() error { return c.close() }

var errLost = errors.New("endpoint lost")

func echo() service {
	return belfry.Of(func(_ context.Context, n int) (int, error) { return n, nil })
}

// dialUntilCancelled returns a dialler that never succeeds, and counts those of its calls that have ended.
func dialUntilCancelled(ended *atomic.Int64) func(ctx context.Context, key, addr string) (service, error) {
	return func(ctx context.Context, _, _ string) (service, error) {
		<-ctx.Done()
		ended.Add(1)
		return nil, ctx.Err()
	}
}

// exit ends its goroutine.
func exit() { runtime.Goexit() }
