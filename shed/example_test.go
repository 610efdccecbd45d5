package shed_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/shed"
)

func Example() {
	ctx := context.Background()
	svc := shed.New(limit.NewConcurrency(belfry.Of(echo), limit.NewLimiter(1)))

	r, _ := belfry.Reserve(ctx, svc) // takes the only place
	_, err := belfry.Do(ctx, svc, "hello")
	fmt.Println(err)
	fmt.Println(errors.Is(err, shed.Err), errors.Is(err, belfry.ErrRejected))
	if why, ok := errors.AsType[*belfry.Rejection](err); ok {
		fmt.Printf("%s is %s: %d of %d\n", why.Layer, why.Reason, why.InFlight, why.Limit)
	}

	r.Release()
	fmt.Println(belfry.Do(ctx, svc, "hello"))
	// Output:
	// shed: limit: full (1 of 1 in flight): belfry: not ready
	// true true
	// limit is full: 1 of 1
	// hello <nil>
}
