package timeout_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
)

var errBoom = errors.New("boom")

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// pause lets virtual time pass.
func pause(d time.Duration) { time.Sleep(d) }

// heedful answers after d, or fails as soon as its context ends.
func heedful(d time.Duration) belfry.Service[string, string] {
	return belfry.Of(func(ctx context.Context, req string) (string, error) {
		select {
		case <-time.After(d):
			return req, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
}

// A stream is a response that is read by the context of its call.
type stream struct {
	ctx   context.Context
	once  sync.Once
	ended func()
}

func (s *stream) close() { s.once.Do(s.ended) }

// read waits for d, as for a piece of the response.
func (s *stream) read(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

var streams = belfry.Semantics[string, *stream]{
	Until:   func(s *stream, done func()) *stream { s.ended = done; return s },
	Discard: func(s *stream) { s.close() },
}

// spy shows the contexts that it is given.
type spy struct {
	belfry.Service[string, string]
	acquire func(context.Context) error
	call    func(context.Context)
	release func()
}

func (s spy) Acquire(ctx context.Context) (belfry.Permit, error) {
	if s.acquire != nil {
		if err := s.acquire(ctx); err != nil {
			return belfry.Permit{}, err
		}
	}
	return belfry.Permit{}, nil
}

func (s spy) Call(ctx context.Context, permit belfry.Permit, req string) (string, error) {
	if s.call != nil {
		s.call(ctx)
	}
	if s.Service == nil {
		return req, nil
	}
	return s.Service.Call(ctx, permit, req)
}

func (s spy) Release(belfry.Permit) {
	if s.release != nil {
		s.release()
	}
}

// wantIs checks what err is and what it is not.
func wantIs(t *testing.T, err error, is []error, isNot ...error) {
	t.Helper()
	for _, want := range is {
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
	for _, not := range isNot {
		if errors.Is(err, not) {
			t.Errorf("%v is %v", err, not)
		}
	}
}

// took fails unless so much virtual time has passed since begin.
func took(t *testing.T, begin time.Time, want time.Duration) {
	t.Helper()
	if d := time.Since(begin); d != want {
		t.Errorf("took %v, want %v", d, want)
	}
}

// A lateLayer acquires inside Call.
type lateLayer struct {
	inner belfry.Service[string, string]
}

func (l *lateLayer) Acquire(context.Context) (belfry.Permit, error) { return belfry.Permit{}, nil }
func (l *lateLayer) Release(belfry.Permit)                          {}

func (l *lateLayer) Call(ctx context.Context, _ belfry.Permit, req string) (string, error) {
	permit, err := belfry.AcquireLate(ctx, "late", l.inner)
	if err != nil {
		return "", err
	}
	return l.inner.Call(ctx, permit, req)
}
