package balance_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// starts is a metric that notes when calls start.
type starts struct {
	load.Endpoint
	at []int64
}

func (s *starts) Validate() error                  { return nil }
func (s *starts) Fleet() load.Fleet                { return startsFleet{s} }
func (s *starts) Start(now int64) load.Mark        { s.at = append(s.at, now); return load.Mark{} }
func (s *starts) End(int64, load.Mark, load.Class) {}
func (s *starts) Cost(int64, int) float64          { return 0 }
func (s *starts) Leave()                           {}

type startsFleet struct{ s *starts }

func (startsFleet) Timed() bool                        { return true }
func (f startsFleet) Join(string, int64) load.Endpoint { return f.s }

// slow has an Acquire that takes a millisecond, though it should not, and a Call that does before it goes on.
type slow struct{ service }

func (s slow) Acquire(ctx context.Context) (belfry.Permit, error) {
	<-time.After(time.Millisecond)
	return s.service.Acquire(ctx)
}

// late passes permits on, and takes a second before it does.
type late struct{ service }

func (l late) Call(ctx context.Context, permit belfry.Permit, req int) (int, error) {
	<-time.After(time.Second)
	return l.service.Call(ctx, permit, req)
}

// laterStill does so too, and has all methods of the Balancer.
type laterStill struct{ *balancer }

func (l laterStill) Call(ctx context.Context, permit belfry.Permit, req int) (int, error) {
	return late{l.balancer}.Call(ctx, permit, req)
}

// A call whose permit was spent at once starts when its endpoint was chosen, which spares a look at the clock; any other when Call begins.
func TestPrompt(t *testing.T) {
	const took = 1000 // of slow
	for _, c := range []struct {
		name string
		call func(ctx context.Context, b service)
		want int64
	}{
		{"at once", func(ctx context.Context, b service) { _, _ = belfry.Do(ctx, b, 1) }, 0},
		{"reserved", func(ctx context.Context, b service) {
			r, err := belfry.Reserve(ctx, b)
			if err == nil {
				<-time.After(time.Second)
				_, _ = r.Call(ctx, 1)
			}
		}, took + 1e6},
		{"under a layer that takes its time", func(ctx context.Context, b service) { _, _ = belfry.Do(ctx, late{b}, 1) }, took + 1e6},
		{"in a type that takes its time", func(ctx context.Context, b service) { _, _ = belfry.Do(ctx, laterStill{b.(*balancer)}, 1) }, took + 1e6},
	} {
		bubble(t, c.name, func(t *testing.T) {
			metric := &starts{}
			dial := func(context.Context, string, string) (service, error) { return slow{echo()}, nil }
			b, err := balance.New(discover.List("a"), dial, balance.Config{Load: metric})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			<-time.After(time.Minute)
			synctest.Wait()
			c.call(t.Context(), b)
			if want := []int64{60e6 + c.want}; !slices.Equal(metric.at, want) {
				t.Errorf("started at %d, want %d", metric.at, want)
			}
		})
	}
}
