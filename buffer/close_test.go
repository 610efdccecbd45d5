package buffer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/internal/attempt"
)

func TestClose(t *testing.T) {
	bubble(t, "D24 X2 a call on a seat taken before Close gets an answer", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 2, buffer.Config{})
		b.Allow(1)
		for _, ctx := range []context.Context{t.Context(), attempt.Hedge(t.Context())} {
			permit, err := svc.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				_, err = svc.Call(ctx, permit, "hello")
				refused(t, err, "closed", belfry.ErrClosed)
			}()
		}
		_ = svc.Close()
	})

	bubble(t, "S19 a call that gets the turn in the moment of Close does not wait", func(t *testing.T) {
		_, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		ctx := doneHook{t.Context(), func() { _ = svc.Close() }}
		refused(t, done(t, "the call", call(ctx, svc, "hello")).err, "closed", belfry.ErrClosed)
	})

	bubble(t, "S19 Close answers those in line although the inner Acquire does not notice", func(t *testing.T) {
		late := make(chan struct{})
		svc := buffer.New(service(faulty{acquire: func(ctx context.Context) error {
			if ctx.Err() == nil {
				<-late
			}
			return &belfry.Rejection{Layer: "inner", Err: belfry.ErrNotReady}
		}}), 3, buffer.Config{})
		inside, inLine := call(t.Context(), svc, "1"), call(t.Context(), svc, "2")
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = svc.Close()
		refused(t, done(t, "the call in line", inLine).err, "closed", belfry.ErrClosed)
		seated := make(chan result, 1)
		go func() {
			res, err := svc.Call(t.Context(), permit, "3")
			seated <- result{res, err}
		}()
		refused(t, done(t, "a call that begins now", seated).err, "closed", belfry.ErrClosed)
		pending(t, "the call inside", inside)
		close(late)
		refused(t, done(t, "the call inside", inside).err, "closed", belfry.ErrClosed)
	})

	bubble(t, "a call on a seat taken before Close is refused also when the turn is free again", func(t *testing.T) {
		asked := 0
		svc := buffer.New(service(faulty{acquire: func(ctx context.Context) error {
			asked++
			if ctx.Err() == nil {
				<-ctx.Done()
			}
			return &belfry.Rejection{Layer: "inner", Err: ctx.Err()}
		}}), 2, buffer.Config{})
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inside := call(t.Context(), svc, "1")
		_ = svc.Close()
		refused(t, done(t, "the call inside", inside).err, "closed", belfry.ErrClosed)
		before := asked
		_, err = svc.Call(t.Context(), permit, "2")
		refused(t, err, "closed", belfry.ErrClosed)
		if asked != before {
			t.Error("the inner service was asked")
		}
		wantStats(t, svc, buffer.Stats{Bound: 2, Rejected: 2, Closed: true})
	})

	bubble(t, "who gives up waiting for a seat in the moment of Close gets no seat", func(t *testing.T) {
		_, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		closing := &closeOnEnd{ctx, func() { _ = svc.Close() }}
		seat := acquire(closing, svc)
		cancel()
		refused(t, done(t, "the seat", seat), "closed", belfry.ErrClosed)
		svc.Release(permit)
		wantStats(t, svc, buffer.Stats{Bound: 1, Rejected: 1, Closed: true})
	})

	bubble(t, "BF9 ErrClosed from inside counts also where the caller has left", func(t *testing.T) {
		svc := buffer.New(service(faulty{acquire: func(ctx context.Context) error {
			if ctx.Err() != nil {
				return &belfry.Rejection{Layer: "inner", Err: ctx.Err()}
			}
			<-ctx.Done()
			return belfry.ErrClosed
		}}), 1, buffer.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		c := call(ctx, svc, "hello")
		cancel()
		if err := done(t, "the call", c).err; !errors.Is(err, belfry.ErrClosed) {
			t.Errorf("got %v", err)
		}
		wantStats(t, svc, buffer.Stats{Bound: 1, Failed: 1, Closed: true})
	})

	bubble(t, "a seat can be given back after Close", func(t *testing.T) {
		_, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		permit, err := svc.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = svc.Close()
		svc.Release(permit)
		wantStats(t, svc, buffer.Stats{Bound: 1, Closed: true})
	})

	bubble(t, "the first reason to close stays", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		b.Close()
		_, _ = belfry.Do(t.Context(), svc, "hello")
		_ = svc.Close()
		_, err := svc.Acquire(t.Context())
		refused(t, err, "inner service closed", belfry.ErrClosed)
	})
}

// A closeOnEnd is a context that calls a function when it is asked for its error after its end.
type closeOnEnd struct {
	context.Context
	hook func()
}

func (c *closeOnEnd) Err() error {
	err := c.Context.Err()
	if err != nil {
		c.hook()
	}
	return err
}
