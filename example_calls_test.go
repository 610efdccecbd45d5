package belfry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belfry-go/belfry"
)

// Four pages at a time; the results come in the order of the addresses.
func ExampleCallAll() {
	length := belfry.Of(func(_ context.Context, page string) (int, error) {
		if page == "" {
			return 0, errors.New("no address")
		}
		return len(page), nil
	})
	pages := slices.Values([]string{"/", "/bells", "", "/towers"})
	for r := range belfry.CallAll(context.Background(), length, pages, 4) {
		fmt.Printf("%q %d %v\n", r.Req, r.Res, r.Err)
	}
	// Output:
	// "/" 1 <nil>
	// "/bells" 6 <nil>
	// "" 0 no address
	// "/towers" 7 <nil>
}

// To stop without losing an input: cancel, and finish the loop. What was taken and not sent comes back.
func ExampleCallAll_stop() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	worker := belfry.Of(func(_ context.Context, job int) (string, error) { return fmt.Sprint("done ", job), nil })
	jobs := func(yield func(int) bool) {
		for job := range 100 {
			if job == 2 {
				cancel() // enough
			}
			if !yield(job) {
				return
			}
		}
	}
	for r := range belfry.CallAll(ctx, worker, jobs, 1) {
		if errors.Is(r.Err, belfry.ErrRejected) {
			fmt.Println("not sent:", r.Req)
			continue
		}
		fmt.Println(r.Res)
	}
	// Output:
	// done 0
	// done 1
	// not sent: 2
}

// A service that takes a while to make can be stacked and shared before it is there.
func ExampleLazy() {
	svc := belfry.NewLazy(func(context.Context) (belfry.Service[string, string], error) {
		fmt.Println("connecting")
		return belfry.Of(func(_ context.Context, name string) (string, error) { return "hello " + name, nil }), nil
	})
	defer svc.Close()
	fmt.Println("made nothing yet")
	fmt.Println(belfry.Do(context.Background(), svc, "bell"))
	// Output:
	// made nothing yet
	// connecting
	// hello bell <nil>
}

// There may be a second site, or none.
func ExampleOptional() {
	var second belfry.Service[string, string]
	_, err := belfry.Do(context.Background(), belfry.Optional(second), "hello")
	fmt.Println(err)
	fmt.Println(errors.Is(err, belfry.ErrClosed), errors.Is(err, belfry.ErrEmpty))
	// Output:
	// optional: empty: belfry: closed: belfry: no service
	// true true
}
