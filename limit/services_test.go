package limit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

var errBoom = errors.New("boom")

// bubble runs f as a subtest in virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// A stream is a response that is over when it is closed.
type stream struct {
	once  sync.Once
	ended func()
}

func (s *stream) close() { s.once.Do(s.ended) }

func open(context.Context, string) (*stream, error) { return &stream{}, nil }

var streams = belfry.Semantics[string, *stream]{
	Until:   func(s *stream, done func()) *stream { s.ended = done; return s },
	Discard: func(s *stream) { s.close() },
}

// A closedDoor keeps every Acquire waiting.
type closedDoor struct{}

func (closedDoor) Acquire(ctx context.Context) (belfry.Permit, error) {
	<-ctx.Done()
	return belfry.Permit{}, ctx.Err()
}
func (closedDoor) Call(context.Context, belfry.Permit, string) (string, error) { return "", nil }
func (closedDoor) Release(belfry.Permit)                                       {}

// A faulty service does what its functions do.
type faulty struct {
	permit  belfry.Permit
	acquire func() error
	call    func() error
	release func()
	check   func(belfry.Permit)
}

func (f faulty) Acquire(context.Context) (belfry.Permit, error) {
	if f.acquire != nil {
		if err := f.acquire(); err != nil {
			return belfry.Permit{}, err
		}
	}
	return f.permit, nil
}

func (f faulty) Call(_ context.Context, permit belfry.Permit, _ string) (*stream, error) {
	if f.check != nil {
		f.check(permit)
	}
	if f.call != nil {
		return nil, f.call()
	}
	return &stream{}, nil
}

func (f faulty) Release(permit belfry.Permit) {
	if f.check != nil {
		f.check(permit)
	}
	if f.release != nil {
		f.release()
	}
}

func over(f faulty, sem ...belfry.Semantics[string, *stream]) func(*limit.Limiter) belfry.Service[string, *stream] {
	return func(l *limit.Limiter) belfry.Service[string, *stream] { return limit.NewConcurrency(f, l, sem...) }
}
