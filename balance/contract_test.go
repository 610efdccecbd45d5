package balance_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/discover"
)

func TestContract(t *testing.T) {
	over := func(addrs ...string) belfrytest.Builder {
		return func(t testing.TB, inner service) (service, func()) {
			b, err := balance.New(discover.List(addrs...), func(context.Context, string, string) (service, error) {
				return inner, nil
			}, balance.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return b, func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	t.Run("one endpoint", func(t *testing.T) { belfrytest.TestLayer(t, over("a"), belfrytest.Recovers) })
	t.Run("two endpoints that share their room", func(t *testing.T) { belfrytest.TestLayer(t, over("a", "b"), belfrytest.Recovers) })
}
