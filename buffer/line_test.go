package buffer_test

import (
	"errors"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/internal/attempt"
)

func TestHeadOfLine(t *testing.T) {
	bubble(t, "D27 only the head waits in the inner Acquire, and any free permit serves it", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 5, buffer.Config{})
		b.Allow(2)
		left, right := call(t.Context(), svc, "left"), call(t.Context(), svc, "right")
		atLeft, atRight := b.Expect("left"), b.Expect("right")
		var calls []<-chan result
		for _, req := range []string{"1", "2", "3"} {
			calls = append(calls, call(t.Context(), svc, req))
		}
		if n := b.Waiting(); n != 1 {
			t.Errorf("%d wait in the inner Acquire, want 1", n)
		}
		atRight.Answer("r")
		answered(t, right, "r")
		b.Allow(1) // what right has left, while left goes on
		b.Expect("1").Answer("1")
		answered(t, calls[0], "1")
		if n := b.Waiting(); n != 1 {
			t.Errorf("%d wait in the inner Acquire, want 1", n)
		}
		b.Allow(1)
		second := b.Expect("2")
		b.Allow(1)
		third := b.Expect("3")
		third.Answer("3")
		answered(t, calls[2], "3")
		second.Answer("2")
		answered(t, calls[1], "2")
		atLeft.Answer("l")
		answered(t, left, "l")
	})
}

func TestHedge(t *testing.T) {
	bubble(t, "a hedge goes ahead if nobody is in line and the inner service is ready", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		b.Allow(1)
		c := call(attempt.Hedge(t.Context()), svc, "hedge")
		b.Expect("hedge").Answer("ok")
		answered(t, c, "ok")
	})

	bubble(t, "a hedge does not wait for the inner service", func(t *testing.T) {
		_, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 1, buffer.Config{})
		err := done(t, "hedge", call(attempt.Hedge(t.Context()), svc, "hedge")).err
		if r, _ := errors.AsType[*belfry.Rejection](err); !errors.Is(err, belfry.ErrNotReady) || r.Layer != "belfrytest" {
			t.Errorf("got %v, want what the inner service says", err)
		}
		wantStats(t, svc, buffer.Stats{Bound: 1, Rejected: 1})
	})

	bubble(t, "a hedge does not get in line, nor ahead of it", func(t *testing.T) {
		b, inner := belfrytest.NewBackend[string, string](t)
		svc := buffer.New(inner, 3, buffer.Config{})
		first := call(t.Context(), svc, "first")
		refused(t, done(t, "hedge", call(attempt.Hedge(t.Context()), svc, "hedge")).err, "a hedge does not queue", belfry.ErrNotReady)
		wantStats(t, svc, buffer.Stats{Bound: 3, Seated: 1, Queued: 1, Rejected: 1})
		b.Allow(1)
		b.Expect("first").Answer("ok")
		answered(t, first, "ok")
	})
}
