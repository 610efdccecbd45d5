package balance_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/discover"
)

func TestContract(t *testing.T) {
	belfrytest.TestLayer(t, func(t testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		b, err := balance.New(discover.List("a", "b"), func(context.Context, string, string) (belfry.Service[int, int], error) {
			return inner, nil
		}, balance.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return b, func() { b.Close() }
	})
}
