package pool_test

import (
	"context"
	"fmt"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/pool"
)

// Each tenant has a limit of its own, made when it first comes, and forgotten when it has been away for a while.
func Example() {
	type request struct{ tenant, text string }
	backend := belfry.Of(func(_ context.Context, req request) (string, error) {
		return "for " + req.tenant + ": " + req.text, nil
	})
	tenants := pool.New(func(tenant string) (belfry.Service[request, string], error) {
		fmt.Println("a limit for", tenant)
		return limit.NewConcurrency(backend, limit.NewLimiter(10)), nil
	}, pool.Config{Max: 100})
	defer tenants.Close()

	svc := tenants.Service(func(req request) string { return req.tenant })
	for _, req := range []request{{"ann", "hello"}, {"bob", "good day"}, {"ann", "bye"}} {
		fmt.Println(belfry.Do(context.Background(), svc, req))
	}
	// Output:
	// a limit for ann
	// for ann: hello <nil>
	// a limit for bob
	// for bob: good day <nil>
	// for ann: bye <nil>
}
