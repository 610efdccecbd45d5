package filter_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/filter"
)

func TestContract(t *testing.T) {
	for name, judge := range map[string]func(context.Context, int) (int, error){
		"at once": func(_ context.Context, req int) (int, error) { return req, nil },
		"after a while": func(ctx context.Context, req int) (int, error) {
			select {
			case <-time.After(time.Millisecond):
				return req, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
				return filter.Layer[int, int](judge)(inner), nil
			}, belfrytest.Late)
		})
	}
}
