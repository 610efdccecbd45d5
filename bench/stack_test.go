package bench

import (
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	safetimeout "github.com/failsafe-go/failsafe-go/timeout"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/stack"
)

func built(tb testing.TB, s stack.Stack[int, int], svc service) service {
	tb.Helper()
	svc, err := s.Build(svc)
	if err != nil {
		tb.Fatal(err)
	}
	return svc
}

// BenchmarkStack is a client of three endpoints with all layers: success has those of the peer in the peer's order, client
// those of this repository's README in theirs.
func BenchmarkStack(b *testing.B) {
	replicas := func(f handler) service { return balanced(b, 3, 3, balance.Config{}, belfry.Of(f)) }
	peers := stack.New[int, int]().LoadShed().ConcurrencyLimit(500).Timeout(10 * time.Second).Retry(retry.Config{MaxAttempts: 3}).Buffer(1024)
	client := stack.New[int, int]().LoadShed().Buffer(64).ConcurrencyLimit(500).Timeout(10 * time.Second).Retry(retry.Config{MaxAttempts: 3})
	compare(b, "success", ours(built(b, peers, replicas(echo))))
	compare(b, "client", ours(built(b, client, replicas(echo))))
	once := peers.Semantics(belfry.Semantics[int, int]{Classify: func(_ int, err error) belfry.Outcome {
		return belfry.Outcome{Kind: belfry.Failure} // not worth another attempt
	}})
	compareFailing(b, "failure", ours(built(b, once, replicas(fail))))
}

// BenchmarkPolicies is a call through retry, breaker, limit and timeout.
func BenchmarkPolicies(b *testing.B) {
	safeFour := func(f handler) contender {
		return safe(f,
			retrypolicy.NewBuilder[int]().WithMaxRetries(2).AbortOnErrors(errIll).Build(),
			circuitbreaker.NewBuilder[int]().WithFailureThreshold(1_000_000).Build(),
			bulkhead.New[int](1000),
			safetimeout.New[int](time.Minute))
	}
	ourFour := func(f handler, sem belfry.Semantics[int, int]) contender {
		return ours(built(b, stack.New[int, int]().
			Semantics(sem).
			Retry(retry.Config{MaxAttempts: 3}).
			Breaker(breaker.Config{Consecutive: 1_000_000}).
			ConcurrencyLimit(1000).
			Timeout(time.Minute), belfry.Of(f)))
	}
	final := belfry.Semantics[int, int]{Classify: func(int, error) belfry.Outcome { return belfry.Outcome{Kind: belfry.Failure} }}
	compare(b, "success", safeFour(echo), ourFour(echo, belfry.Semantics[int, int]{}))
	compareFailing(b, "failure", safeFour(fail), ourFour(fail, final))
}
