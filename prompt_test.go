package belfry_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
)

// A stamper grants permits at 7, and notes what the times of those are that it is called with, -1 if they have none.
type stamper struct {
	belfry.Service[int, string]
	prompt bool
	times  []int64
}

func newStamper() *stamper { return &stamper{Service: belfry.Of(echo), prompt: true} }

func (s *stamper) Prompt(any) bool { return s.prompt }

func (s *stamper) Acquire(context.Context) (belfry.Permit, error) {
	return belfry.NewPermit(s).Stamp(7), nil
}

func (s *stamper) Call(ctx context.Context, permit belfry.Permit, req int) (string, error) {
	at, ok := permit.Stamped()
	if !ok {
		at = -1
	}
	s.times = append(s.times, at)
	return s.Service.Call(ctx, belfry.Permit{}, req)
}

// passing is a layer that passes permits on, and says nothing of when.
type passing struct{ inner belfry.Service[int, string] }

func (p passing) Acquire(ctx context.Context) (belfry.Permit, error) { return p.inner.Acquire(ctx) }
func (p passing) Release(permit belfry.Permit)                       { p.inner.Release(permit) }

func (p passing) Call(ctx context.Context, permit belfry.Permit, req int) (string, error) {
	return p.inner.Call(ctx, permit, req)
}

func TestPromptly(t *testing.T) {
	ctx := t.Context()
	reserved := func(svc belfry.Service[int, string]) {
		r, err := belfry.Reserve(ctx, svc)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		_, _ = r.Call(ctx, 1)
	}
	do := func(svc belfry.Service[int, string]) { _, _ = belfry.Do(ctx, svc, 1) }
	for _, c := range []struct {
		name string
		call func(svc belfry.Service[int, string])
		over func(s *stamper) belfry.Service[int, string]
		want int64
	}{
		{"Do", do, func(s *stamper) belfry.Service[int, string] { return s }, 7},
		{"TryDo", func(svc belfry.Service[int, string]) { _, _ = belfry.TryDo(ctx, svc, 1) }, func(s *stamper) belfry.Service[int, string] { return s }, 7},
		{"Do over a layer that does not say that it is prompt", do, func(s *stamper) belfry.Service[int, string] { return passing{s} }, -1},
		{"Do over one that says that it is not", do, func(s *stamper) belfry.Service[int, string] { s.prompt = false; return s }, -1},
		{"a Reservation", reserved, func(s *stamper) belfry.Service[int, string] { return s }, -1},
		{"Around", do, func(s *stamper) belfry.Service[int, string] {
			return belfry.Around(belfry.Service[int, string](s), func(ctx context.Context, req int, next *belfry.Next[int, string]) (string, error) {
				return next.Call(ctx, req)
			})
		}, -1},
	} {
		s := newStamper()
		if c.call(c.over(s)); len(s.times) != 1 || s.times[0] != c.want {
			t.Errorf("%s: called at %d, want %d", c.name, s.times, c.want)
		}
	}
}

func TestStamp(t *testing.T) {
	s := newStamper()
	for _, at := range []int64{0, 1, 1 << 62} {
		permit := belfry.NewPermit(s).Stamp(at)
		if _, ok := permit.Stamped(); ok || permit.Value() != s {
			t.Errorf("%d: a permit that nobody has vouched for has a time, or has lost its value", at)
		}
		permit = belfry.Promptly(belfry.Service[int, string](s), permit)
		if got, ok := permit.Stamped(); !ok || got != at || permit.Value() != s {
			t.Errorf("%d: got %d, %v", at, got, ok)
		}
		if _, ok := permit.Stamp(at).Stamped(); ok {
			t.Errorf("%d: a stamp is good before it was vouched for", at)
		}
	}
	if _, ok := belfry.Promptly(belfry.Service[int, string](s), belfry.NewPermit(s)).Stamped(); ok {
		t.Error("a permit without a stamp has a time")
	}
}
