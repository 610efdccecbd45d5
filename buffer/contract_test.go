package buffer_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/buffer"
)

func TestContract(t *testing.T) {
	const bound = 3
	for _, c := range []struct {
		name   string
		cfg    buffer.Config
		traits []belfrytest.Trait
	}{
		{"FIFO", buffer.Config{}, nil},
		{"FIFO with MaxWait", buffer.Config{MaxWait: 2 * time.Second}, []belfrytest.Trait{belfrytest.TimesOut}},
		{"LIFO", buffer.Config{Order: buffer.LIFO}, []belfrytest.Trait{belfrytest.Reorders}},
		{
			"CoDel",
			buffer.Config{Order: buffer.CoDel, Interval: 2 * time.Second, Target: 1500 * time.Millisecond},
			[]belfrytest.Trait{belfrytest.Reorders, belfrytest.TimesOut},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
				svc := buffer.New(inner, bound, c.cfg)
				return svc, func() { _ = svc.Close() }
			}, append(c.traits, belfrytest.Late, belfrytest.Caps(bound))...)
		})
	}
}
