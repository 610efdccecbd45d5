package steer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/steer"
)

// page answers every request with body.
func page(body string) belfry.Service[*http.Request, string] {
	return belfry.Of(func(context.Context, *http.Request) (string, error) { return body, nil })
}

func get(path string) *http.Request {
	req, _ := http.NewRequest(http.MethodGet, path, nil)
	return req
}

// One route is for the root, the other for everything else.
func ExampleByPredicate() {
	isRoot := func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Path == "/" }
	svc, err := steer.ByPredicate(
		steer.When(isRoot, "root", page("Hello, World!")),
		steer.Otherwise("not found", page("404")),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/", "/elsewhere"} {
		fmt.Println(belfry.Do(context.Background(), svc, get(path)))
	}
	// Output:
	// Hello, World! <nil>
	// 404 <nil>
}

func TestExample(t *testing.T) {
	t.Run("DX3 GET / goes to the root, everything else to the 404 service", func(t *testing.T) {
		svc, err := steer.ByPredicate(
			steer.When(func(r *http.Request) bool { return r.Method == http.MethodGet && r.URL.Path == "/" }, "root", page("Hello, World!")),
			steer.Otherwise("not found", page("404")),
		)
		if err != nil {
			t.Fatal(err)
		}
		post := get("/")
		post.Method = http.MethodPost
		for req, want := range map[*http.Request]string{get("/"): "Hello, World!", get("/x"): "404", post: "404"} {
			if got, err := belfry.Do(t.Context(), svc, req); got != want || err != nil {
				t.Errorf("%s %s: got %q, %v", req.Method, req.URL, got, err)
			}
		}
	})
}

// Tenants of their own have a service of their own; nobody is left for the others.
func ExampleByKey() {
	tenant := func(r *http.Request) string { return r.Header.Get("Tenant") }
	svc, err := steer.ByKey(tenant, map[string]belfry.Service[*http.Request, string]{
		"acme":   page("for acme"),
		"umbrel": page("for umbrel"),
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	req := get("/")
	req.Header.Set("Tenant", "acme")
	fmt.Println(belfry.Do(context.Background(), svc, req))

	req.Header.Set("Tenant", "nobody")
	_, err = belfry.Do(context.Background(), svc, req)
	_, lost := errors.AsType[*steer.RouteError](err)
	fmt.Println(lost, errors.Is(err, belfry.ErrRejected))
	// Output:
	// for acme <nil>
	// true true
}

// One request of twenty goes to the canary.
func ExampleByWeight() {
	random := rand.NewPCG(1, 2) // nil outside of examples
	svc, err := steer.ByWeight(random,
		steer.Share(95, "stable", page("v1")),
		steer.Share(5, "canary", page("v2")),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 1000 {
		_, _ = belfry.Do(context.Background(), svc, get("/"))
	}
	for _, r := range svc.Stats().Routes {
		fmt.Println(r.Name, r.Picked)
	}
	// Output:
	// stable 943
	// canary 57
}
