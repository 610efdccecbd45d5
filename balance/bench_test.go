package balance_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/load"
)

// ready returns a balancer over n endpoints, all of which have been ready once.
func ready(tb testing.TB, n int, cfg balance.Config, dial func() service, sem ...belfry.Semantics[int, int]) *balancer {
	tb.Helper()
	var seen sync.WaitGroup
	seen.Add(n)
	cfg.OnEvent = func(e balance.Event) {
		if e.Kind == balance.EndpointReady {
			seen.Done()
		}
	}
	addrs := make([]string, n)
	for i := range addrs {
		addrs[i] = fmt.Sprint(i)
	}
	b, err := balance.New(discover.List(addrs...), func(context.Context, string, string) (service, error) {
		return dial(), nil
	}, cfg, sem...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { b.Close() })
	seen.Wait()
	return b
}

// BenchmarkCall is a pick and a call, of a service that does nothing.
func BenchmarkCall(b *testing.B) {
	for _, m := range []struct {
		name   string
		metric load.Metric
	}{{"Pending", load.Pending{}}, {"Expected", load.Expected{}}} {
		for _, n := range []int{3, 10, 100, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", m.name, n), func(b *testing.B) {
				svc := ready(b, n, balance.Config{Load: m.metric}, echo)
				ctx := context.Background() // that of a benchmark can be cancelled, and costs more to ask
				b.ReportAllocs()
				for b.Loop() {
					if _, err := belfry.Do(ctx, svc, 1); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkDecisions is BenchmarkCall with and without a ring of decisions.
func BenchmarkDecisions(b *testing.B) {
	for _, n := range []int{0, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			svc := ready(b, 10, balance.Config{Decisions: n}, echo)
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := belfry.Do(ctx, svc, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParallel is BenchmarkCall from all processors at once.
func BenchmarkParallel(b *testing.B) {
	for _, n := range []int{3, 100} {
		b.Run(fmt.Sprintf("Expected/%d", n), func(b *testing.B) {
			svc := ready(b, n, balance.Config{}, echo)
			ctx := context.Background()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := belfry.Do(ctx, svc, 1); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkWrapped is BenchmarkCall over endpoints whose permits remember something.
func BenchmarkWrapped(b *testing.B) {
	svc := ready(b, 3, balance.Config{Load: load.Pending{}}, func() service { return remembering{echo()} })
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := belfry.Do(ctx, svc, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// remembering grants permits that are not zero.
type remembering struct{ service }

var something = new(int)

func (remembering) Acquire(context.Context) (belfry.Permit, error) {
	return belfry.NewPermit(something), nil
}

// BenchmarkRefused asks all endpoints, none of which has room.
func BenchmarkRefused(b *testing.B) {
	for _, n := range []int{3, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			svc := ready(b, n, balance.Config{}, func() service { return &once{service: echo()} })
			ctx := belfry.NoWait(context.Background())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := svc.Acquire(ctx); err == nil {
					b.Fatal("there was room")
				}
			}
		})
	}
}

// once has room for the driver that asks first, and never again.
type once struct {
	service
	asked sync.Once
}

var errFull error = &belfry.Rejection{Layer: "once", Reason: "full", Err: belfry.ErrNotReady}

func (o *once) Acquire(ctx context.Context) (permit belfry.Permit, err error) {
	err = errFull
	o.asked.Do(func() { err = nil })
	return permit, err
}
