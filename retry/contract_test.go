package retry_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/retry"
)

func TestContract(t *testing.T) {
	t.Run("New", func(t *testing.T) {
		belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
			return retry.New(inner, retry.Config{Backoff: retry.Backoff{Max: time.Second}}), nil
		}, belfrytest.Retries)
	})
	t.Run("NewPolicy", func(t *testing.T) {
		belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
			return retry.NewPolicy(inner, retry.Standard[int, int](noBudget(5))), nil
		}, belfrytest.Retries)
	})
}
