package steer_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/steer"
)

func TestContract(t *testing.T) {
	belfrytest.TestLayer(t, func(t testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		parity := func(_ context.Context, req int) int { return req % 2 }
		svc, err := steer.New(parity, steer.To("even", inner), steer.To("odd", inner))
		if err != nil {
			t.Error(err)
		}
		return svc, nil
	}, belfrytest.Late)
}
