package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/buffer"
)

// A kitchen is ready while its stove is free.
type kitchen struct{ stove chan struct{} }

func (k kitchen) Acquire(ctx context.Context) (belfry.Permit, error) {
	select {
	case k.stove <- struct{}{}:
		return belfry.Permit{}, nil
	case <-ctx.Done():
		return belfry.Permit{}, &belfry.Rejection{Layer: "kitchen", Reason: "busy", Err: ctx.Err()}
	}
}

func (k kitchen) Call(_ context.Context, _ belfry.Permit, dish string) (string, error) {
	defer func() { <-k.stove }()
	return "a " + dish, nil
}

func (k kitchen) Release(belfry.Permit) { <-k.stove }

func ExampleNew() {
	ctx := context.Background()
	stove := make(chan struct{}, 1)
	svc := buffer.New(belfry.Service[string, string](kitchen{stove}), 1, buffer.Config{MaxWait: time.Millisecond})

	fmt.Println(belfry.Do(ctx, svc, "soup"))

	stove <- struct{}{} // something is on for long
	_, err := belfry.Do(ctx, svc, "stew")
	fmt.Println(err)
	fmt.Println(errors.Is(err, belfry.ErrRejected))

	seat, _ := belfry.Reserve(ctx, svc) // the only one
	_, err = belfry.TryDo(ctx, svc, "roast")
	fmt.Println(err)
	seat.Release()

	_ = svc.Close()
	_, err = belfry.Do(ctx, svc, "salad")
	fmt.Println(err)
	// Output:
	// a soup <nil>
	// buffer: queued too long (1 of 1 in flight): belfry: not ready
	// true
	// buffer: full (1 of 1 in flight): belfry: not ready
	// buffer: closed (0 of 1 in flight): belfry: closed
}
