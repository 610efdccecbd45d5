package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/timeout"
)

func Example() {
	slow := belfry.Of(func(ctx context.Context, req string) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	svc := timeout.New(slow, 20*time.Millisecond, timeout.Config{})

	_, err := belfry.Do(context.Background(), svc, "hello")
	fmt.Println(err)
	fmt.Println(errors.Is(err, timeout.Err), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// timeout: no answer within 20ms: context deadline exceeded
	// true true
}

// With Wait the duration bounds the wait for room as well. Nothing was sent then, and the error says so.
func Example_wait() {
	full := limit.NewConcurrency(belfry.Of(echo), limit.NewLimiter(0))
	svc := timeout.New(full, 20*time.Millisecond, timeout.Config{Wait: true})

	_, err := belfry.Do(context.Background(), svc, "hello")
	fmt.Println(err)
	fmt.Println(errors.Is(err, timeout.Err), errors.Is(err, belfry.ErrRejected))
	// Output:
	// timeout: no room within 20ms: limit: context done while waiting: context deadline exceeded
	// true true
}
