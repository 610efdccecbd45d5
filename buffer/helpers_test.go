package buffer_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
)

var errBoom = errors.New("boom")

type (
	service = belfry.Service[string, string]
	room    = *buffer.Service[string, string]
)

// bubble runs f as a subtest in virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// elapse lets virtual time pass, and happen what then does. Outside a bubble it panics.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
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

// acquire acquires in the background, and returns when that waits or is through.
func acquire(ctx context.Context, svc service) <-chan error {
	c := make(chan error, 1)
	go func() {
		_, err := svc.Acquire(ctx)
		c <- err
	}()
	synctest.Wait()
	return c
}

// done returns what c brings once everything else is idle, and fails if that is nothing.
func done[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	synctest.Wait()
	select {
	case v := <-c:
		return v
	default:
		t.Fatalf("%s: not done, with everything else idle", what)
		panic("unreachable")
	}
}

func pending[T any](t *testing.T, what string, c <-chan T) {
	t.Helper()
	synctest.Wait()
	select {
	case v := <-c:
		t.Fatalf("%s: done with %v, want it to wait", what, v)
	default:
	}
}

// answered fails unless the call has succeeded with want.
func answered(t *testing.T, c <-chan result, want string) {
	t.Helper()
	if r := done(t, "the call answered "+want, c); r.res != want || r.err != nil {
		t.Errorf("got (%q, %v), want %q", r.res, r.err, want)
	}
}

// refused fails unless err is a Rejection for reason that matches all of causes.
func refused(t *testing.T, err error, reason string, causes ...error) {
	t.Helper()
	r, ok := errors.AsType[*belfry.Rejection](err)
	switch {
	case !ok || !errors.Is(err, belfry.ErrRejected):
		t.Errorf("got %v, want a Rejection", err)
	case r.Layer != "buffer" || r.Reason != reason:
		t.Errorf("got %+v, want it to be of buffer, for %q", r, reason)
	}
	for _, cause := range causes {
		if !errors.Is(err, cause) {
			t.Errorf("got %v, want it to match %v", err, cause)
		}
	}
}

func wantStats(t *testing.T, svc room, want buffer.Stats) {
	t.Helper()
	synctest.Wait()
	if got := svc.Stats(); got != want {
		t.Errorf("stats\n got %+v\nwant %+v", got, want)
	}
}

// A faulty service does what its functions do; without them it is always ready, and answers with the request.
type faulty struct {
	acquire func(context.Context) error
	call    func(context.Context) error
	release func()
}

func (f faulty) Acquire(ctx context.Context) (belfry.Permit, error) {
	if f.acquire != nil {
		return belfry.Permit{}, f.acquire(ctx)
	}
	return belfry.Permit{}, nil
}

func (f faulty) Call(ctx context.Context, _ belfry.Permit, req string) (string, error) {
	if f.call != nil {
		return req, f.call(ctx)
	}
	return req, nil
}

func (f faulty) Release(belfry.Permit) {
	if f.release != nil {
		f.release()
	}
}

// An errHook is a context that calls a function when it is first asked whether it is done.
type errHook struct {
	context.Context
	once sync.Once
	hook func()
}

func (e *errHook) Err() error {
	e.once.Do(e.hook)
	return e.Context.Err()
}

// A doneHook is a context that calls a function when somebody is about to wait for its end.
type doneHook struct {
	context.Context
	hook func()
}

func (d doneHook) Done() <-chan struct{} {
	d.hook()
	return d.Context.Done()
}
