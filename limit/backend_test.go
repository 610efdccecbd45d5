package limit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

// A backend answers each request when the test says so.
type backend struct {
	arrived chan *request
}

type request struct {
	req    string
	answer chan string // closed: the call fails with errBoom
}

func newBackend() (*backend, belfry.Service[string, string]) {
	b := &backend{arrived: make(chan *request, 100)}
	return b, belfry.Of(func(ctx context.Context, req string) (string, error) {
		r := &request{req, make(chan string)}
		b.arrived <- r
		select {
		case res, ok := <-r.answer:
			if !ok {
				return "", errBoom
			}
			return res, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
}

// next returns the request that has arrived, and fails if there is none.
func (b *backend) next(t *testing.T) *request {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-b.arrived:
		return r
	default:
		t.Fatal("no request has arrived")
		return nil
	}
}

func (b *backend) none(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-b.arrived:
		t.Fatalf("request %q has arrived", r.req)
	default:
	}
}

type result struct {
	res string
	err error
}

// call sends req in the background.
func call(ctx context.Context, svc belfry.Service[string, string], req string) <-chan result {
	c := make(chan result, 1)
	go func() {
		res, err := belfry.Do(ctx, svc, req)
		c <- result{res, err}
	}()
	return c
}

type acquired struct {
	permit belfry.Permit
	err    error
}

// acquire acquires in the background.
func acquire(ctx context.Context, svc belfry.Service[string, string]) <-chan acquired {
	c := make(chan acquired, 1)
	go func() {
		permit, err := svc.Acquire(ctx)
		c <- acquired{permit, err}
	}()
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

func wantStats(t *testing.T, l *limit.Limiter, want limit.Stats) {
	t.Helper()
	synctest.Wait()
	if got := l.Stats(); got != want {
		t.Errorf("stats\n got %+v\nwant %+v", got, want)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
