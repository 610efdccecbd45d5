package bench

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

// balanced returns a balancer over n endpoints, of which those below ready have been ready once and the others, which never are, dialled.
func balanced(tb testing.TB, n, ready int, cfg balance.Config, inner service) *balance.Balancer[int, int] {
	tb.Helper()
	var seen sync.WaitGroup
	seen.Add(ready + n)
	cfg.OnEvent = func(e balance.Event) {
		if e.Kind == balance.EndpointReady || e.Kind == balance.EndpointDialled {
			seen.Done()
		}
	}
	addrs := make([]string, n)
	for i := range addrs {
		addrs[i] = fmt.Sprint(i)
	}
	dial := func(_ context.Context, _, addr string) (service, error) {
		if i := 0; ready < n {
			if _, err := fmt.Sscan(addr, &i); err == nil && i >= ready {
				return never{inner}, nil
			}
		}
		return inner, nil
	}
	b, err := balance.New(discover.List(addrs...), dial, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { b.Close() })
	seen.Wait()
	return b
}

// never has no room.
type never struct{ service }

var errNever error = &belfry.Rejection{Layer: "never", Reason: "full", Err: belfry.ErrNotReady}

func (never) Acquire(ctx context.Context) (belfry.Permit, error) {
	if ctx.Done() != nil {
		<-ctx.Done()
	}
	return belfry.Permit{}, errNever
}

// BenchmarkBalance picks one of so many endpoints and calls it, by requests in flight and by the default cost. No module for Go
// does that for calls of any kind; tower does.
func BenchmarkBalance(b *testing.B) {
	for _, by := range []struct {
		name   string
		metric load.Metric
	}{{"pending", load.Pending{}}, {"latency", nil}} {
		for _, n := range []int{3, 10, 100, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s-%d", by.name, n), func(b *testing.B) {
				svc := balanced(b, n, n, balance.Config{Load: by.metric}, belfry.Of(echo))
				run(b, true, []contender{ours(svc)})
			})
		}
	}
	compareFailing(b, "failure", ours(balanced(b, 3, 3, balance.Config{}, belfry.Of(fail))))
}
