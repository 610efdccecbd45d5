package belfry_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/belfry-go/belfry"
)

// A room is a service with n places over f; it counts what it has given out and fails the test on a double spend.
type room struct {
	t    *testing.T
	free atomic.Int64
	held sync.Map // *int: held permits
	err  error    // what Acquire fails with, if set
	f    func(ctx context.Context, req int) (string, error)
}

func newRoom(t *testing.T, n int64, f func(context.Context, int) (string, error)) *room {
	r := &room{t: t, f: f}
	r.free.Store(n)
	return r
}

func echo(_ context.Context, req int) (string, error) { return strconv.Itoa(req), nil }

func (r *room) Acquire(ctx context.Context) (belfry.Permit, error) {
	if r.err != nil {
		return belfry.Permit{}, r.err
	}
	if r.free.Add(-1) < 0 {
		r.free.Add(1)
		return belfry.Permit{}, &belfry.Rejection{Layer: "room", Err: belfry.ErrNotReady}
	}
	p := new(int)
	r.held.Store(p, true)
	return belfry.NewPermit(p), nil
}

func (r *room) spend(p belfry.Permit) {
	if _, ok := r.held.LoadAndDelete(p.Value()); !ok {
		r.t.Errorf("permit %v spent twice, or not of this room", p)
	}
	r.free.Add(1)
}

func (r *room) Call(ctx context.Context, p belfry.Permit, req int) (string, error) {
	defer r.spend(p)
	return r.f(ctx, req)
}
func (r *room) Release(p belfry.Permit) { r.spend(p) }

func (r *room) wantFree(n int64) {
	r.t.Helper()
	if got := r.free.Load(); got != n {
		r.t.Errorf("%d places free, want %d", got, n)
	}
}

var errBoom = errors.New("boom")
