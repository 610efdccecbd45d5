//go:build !race

package retry_test

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/retry"
)

func TestAllocs(t *testing.T) {
	ctx := context.Background()
	answer := &page{status: 200}
	inner := belfry.Of(func(context.Context, string) (*page, error) { return answer, nil })
	svc := retry.New(inner, retry.Config{}, pages)
	own := &judge{observe: failed}
	policy := retry.NewPolicy(inner, always(own), pages)
	for name, svc := range map[string]belfry.Service[string, *page]{"New": svc, "NewPolicy": policy} {
		if got := testing.AllocsPerRun(1000, func() { _, _ = belfry.Do(ctx, svc, "hello") }); got != 1 {
			t.Errorf("a successful call of %s allocates %v times, want 1", name, got)
		}
	}
}
