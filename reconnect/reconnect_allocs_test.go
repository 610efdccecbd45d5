//go:build !race

package reconnect_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/reconnect"
)

// A remembering service grants permits that are not zero, and which it has already.
type remembering struct{ p *int }

func (r remembering) Acquire(context.Context) (belfry.Permit, error) {
	return belfry.NewPermit(r.p), nil
}
func (r remembering) Call(context.Context, belfry.Permit, string) (int, error) { return 0, nil }
func (r remembering) Release(belfry.Permit)                                    {}

func TestAllocsReconnect(t *testing.T) {
	ctx := t.Context()
	svc := made(t)
	over := reconnect.New(func(context.Context) (belfry.Service[string, int], error) { return remembering{new(int)}, nil }, reconnect.Config{})
	streamed := reconnect.New(func(context.Context) (belfry.Service[string, int], error) { return belfry.Of(length), nil }, reconnect.Config{},
		belfry.Semantics[string, int]{Until: func(n int, done func()) int { done(); return n }})
	defer over.Close()
	defer streamed.Close()
	for _, c := range []struct {
		name string
		want float64
		f    func()
	}{
		{"a call", 0, func() { _, _ = belfry.Do(ctx, svc, "") }},
		{"a streamed call", 0, func() { _, _ = belfry.Do(ctx, streamed, "") }},
		{"a reservation", 0, func() { permit, _ := svc.Acquire(ctx); svc.Release(permit) }},
		{"a call over a service with permits of its own", 1, func() { _, _ = belfry.Do(ctx, over, "") }},
	} {
		c.f() // makes it
		if n := testing.AllocsPerRun(200, c.f); n != c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, n, c.want)
		}
	}
}
