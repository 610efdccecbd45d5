package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/retry"
)

func ExampleNew() {
	attempts := 0
	flaky := belfry.Of(func(_ context.Context, name string) (string, error) {
		if attempts++; attempts < 3 {
			return "", errors.New("connection reset")
		}
		return "hello " + name, nil
	})
	svc := retry.New(flaky, retry.Config{Backoff: retry.Backoff{Min: time.Millisecond}})

	res, err := belfry.Do(context.Background(), svc, "world")
	fmt.Println(res, err)
	fmt.Println("retries:", svc.Stats().Retries)
	// Output:
	// hello world <nil>
	// retries: 2
}

// A query is a request that knows which attempt it is.
type query struct {
	text    string
	attempt int
}

// numbered is the ready-made behaviour, and numbers the attempts.
type numbered struct {
	retry.Policy[query, string]
}

func (p numbered) Retry(ctx context.Context, a *retry.Attempt[string], next *query) (time.Duration, bool) {
	next.attempt = a.N + 1
	return p.Policy.Retry(ctx, a, next)
}

func ExampleNewPolicy() {
	inner := belfry.Of(func(_ context.Context, q query) (string, error) {
		fmt.Printf("%s, attempt %d\n", q.text, q.attempt)
		if q.attempt < 2 {
			return "", errors.New("try again")
		}
		return "answer", nil
	})
	standard := retry.Standard[query, string](retry.Config{Backoff: retry.Backoff{Min: time.Millisecond}})
	svc := retry.NewPolicy(inner, func() retry.Policy[query, string] { return numbered{standard()} })

	res, err := belfry.Do(context.Background(), svc, query{"question", 1})
	fmt.Println(res, err)
	// Output:
	// question, attempt 1
	// question, attempt 2
	// answer <nil>
}
