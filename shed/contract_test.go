package shed_test

import (
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/shed"
)

func TestContract(t *testing.T) {
	belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		return shed.New(inner), nil
	}, belfrytest.Sheds)
}
