package reconnect_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/reconnect"
)

var errRefused = errors.New("connection refused")

type service = belfry.Service[string, string]

// bubble runs f as a subtest in virtual time. It fails if a goroutine is left.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// elapse lets virtual time pass, and happen what then does. Outside a bubble it panics.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A chance is a source of random numbers that always returns the same fraction.
type chance float64

func (c chance) Uint64() uint64 { return uint64(float64(c) * (1 << 53)) }

// exact has pauses of 1, 2, 4 and 8 s.
var exact = reconnect.Config{MinBackoff: time.Second, MaxBackoff: 8 * time.Second, Rand: chance(0)}

// A target is what there is to connect to.
type target struct {
	mu    sync.Mutex
	takes time.Duration // that a dial lasts
	err   error         // of dials
	begun time.Time
	dials []time.Duration // since begun
	conns []*conn
}

func newTarget() *target { return &target{begun: time.Now()} }

func (g *target) becomes(takes time.Duration, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takes, g.err = takes, err
}

func (g *target) dial(ctx context.Context) (service, error) {
	g.mu.Lock()
	g.dials = append(g.dials, time.Since(g.begun))
	takes, err := g.takes, g.err
	g.mu.Unlock()
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &conn{ends: make(chan struct{})}
	g.conns = append(g.conns, c)
	return c, nil
}

func (g *target) times() []time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]time.Duration(nil), g.dials...)
}

// conn returns the connection made last.
func (g *target) conn() *conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conns[len(g.conns)-1]
}

func (g *target) made() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.conns)
}

// A conn answers with the request, unless told otherwise.
type conn struct {
	mu      sync.Mutex
	acquire error
	call    error
	full    bool
	grants  chan struct{} // Acquire returns when it is closed
	slow    chan struct{} // calls last until it is closed
	ends    chan struct{} // closed by Close
	closes  int
	held    int
}

func (c *conn) set(f func(c *conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

func (c *conn) Acquire(ctx context.Context) (belfry.Permit, error) {
	c.mu.Lock()
	err, full, grants := c.acquire, c.full, c.grants
	c.mu.Unlock()
	if grants != nil {
		<-grants
	}
	if err == nil && full {
		<-ctx.Done()
		return belfry.Permit{}, &belfry.Rejection{Layer: "conn", Err: ctx.Err()}
	}
	if err == nil {
		c.set(func(c *conn) { c.held++ })
	}
	return belfry.Permit{}, err
}

func (c *conn) Call(_ context.Context, _ belfry.Permit, req string) (string, error) {
	defer c.Release(belfry.Permit{})
	c.mu.Lock()
	err, slow := c.call, c.slow
	c.mu.Unlock()
	if slow != nil {
		<-slow
	}
	return req, err
}

func (c *conn) Release(belfry.Permit) { c.set(func(c *conn) { c.held-- }) }

func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closes++; c.closes == 1 {
		close(c.ends)
	}
	return errClosing
}

var errClosing = errors.New("closing")

func (c *conn) closed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closes
}

type result struct {
	res string
	err error
}

// call sends req in the background, and returns when that waits or is through.
func call(ctx context.Context, svc service, req string) <-chan result {
	c := make(chan result, 1)
	go func() {
		res, err := belfry.Do(ctx, svc, req)
		c <- result{res, err}
	}()
	synctest.Wait()
	return c
}

// got returns the result of a call that is through.
func got(t *testing.T, c <-chan result) result {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		return r
	default:
		t.Fatal("it waits")
		return result{}
	}
}

func waits(t *testing.T, c <-chan result) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-c:
		t.Fatalf("got %+v, want it to wait", r)
	default:
	}
}

func served(t *testing.T, svc service) {
	t.Helper()
	if res, err := belfry.Do(t.Context(), svc, "x"); res != "x" || err != nil {
		t.Fatalf("got %q, %v, want to be served", res, err)
	}
}

// refused returns the refusal of err.
func refused(t *testing.T, err error) *belfry.Rejection {
	t.Helper()
	r, ok := errors.AsType[*belfry.Rejection](err)
	if !ok {
		t.Fatalf("got %v, want a Rejection", err)
	}
	return r
}

// attempt returns the AttemptError of err.
func attempt(t *testing.T, err error) *reconnect.AttemptError {
	t.Helper()
	e, ok := errors.AsType[*reconnect.AttemptError](err)
	if !ok {
		t.Fatalf("got %v, want an AttemptError", err)
	}
	return e
}

func connecting(t *testing.T, g *target, cfg reconnect.Config) *reconnect.Service[string, string] {
	t.Helper()
	svc := reconnect.New(g.dial, cfg)
	t.Cleanup(func() { _ = svc.Close() })
	return svc
}
