package belfrytest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
)

// A printer stands for the *testing.T that an example does not have: it prints why the test fails.
type printer struct{ cleanups []func() }

func (*printer) Helper()            {}
func (p *printer) Cleanup(f func()) { p.cleanups = append(p.cleanups, f) }

func (*printer) Errorf(format string, args ...any) {
	first, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n")
	fmt.Fprintln(os.Stdout, "FAIL:", first)
}

func (p *printer) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	panic("the test is over")
}

// end is what happens when a test function returns.
func (p *printer) end() {
	for _, f := range p.cleanups {
		f()
	}
}

func ExampleNewBackend() {
	t := new(printer) // in a test, its *testing.T
	defer t.end()
	ctx := context.Background()

	backend, svc := belfrytest.NewBackend[string, string](t)
	backend.Allow(1)

	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err := belfry.Do(ctx, svc, "hello")
		fmt.Println(res, err)
	}()
	backend.Expect("hello").Answer("world")
	<-done

	// One grant was one call.
	_, err := belfry.TryDo(ctx, svc, "again")
	fmt.Println(errors.Is(err, belfry.ErrNotReady))

	backend.Allow(1)
	backend.FailAcquire(errors.New("no route to host"))
	_, err = belfry.Do(ctx, svc, "once more")
	fmt.Println(err)

	// Output:
	// world <nil>
	// true
	// acquire: refused: no route to host
}

// What a test forgets fails it, by the rule.
func ExampleBackend() {
	t := new(printer)
	ctx := context.Background()
	backend, svc := belfrytest.NewBackend[string, string](t)

	_, err := svc.Call(ctx, belfry.Permit{}, "hello")
	fmt.Println(err)

	backend.Allow(1)
	_, _ = svc.Acquire(ctx)
	t.end()

	// Output:
	// FAIL: rule 2: Call of hello with a permit that was never granted (the zero Permit)
	// belfry: permit already spent
	// FAIL: rule 2: a permit was neither spent by Call nor given back by Release, granted to
}

// The permits of a function remember nothing, so that it cannot tell one from the other.
func ExampleStrict() {
	t := new(printer)
	defer t.end()
	ctx := context.Background()
	double := belfry.Of(func(_ context.Context, n int) (int, error) { return 2 * n, nil })

	svc := belfrytest.Strict(t, double)
	permit, _ := svc.Acquire(ctx)
	fmt.Println(svc.Call(ctx, permit, 21))
	fmt.Println(svc.Call(ctx, permit, 22))

	// Output:
	// 42 <nil>
	// FAIL: rule 2: Call of 22 with a permit that was spent already, granted to
	// 0 belfry: permit already spent
}

func ExampleTestLayer() {
	_ = func(t *testing.T) { // func TestContract(t *testing.T)
		belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
			return polite(inner), nil
		})
	}
}

// polite is a layer of one's own.
func polite(inner belfry.Service[int, int]) belfry.Service[int, int] {
	return belfry.Around(inner, func(ctx context.Context, req int, next *belfry.Next[int, int]) (int, error) {
		res, err := next.Call(ctx, req)
		if err != nil {
			err = fmt.Errorf("sorry: %w", err)
		}
		return res, err
	})
}

func TestPolite(t *testing.T) {
	build := func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		return polite(inner), nil
	}
	belfrytest.TestLayer(t, build)
	belfrytest.Allocs(t, build, 1)
}

func ExampleAllocs() {
	_ = func(t *testing.T) { // func TestAllocs(t *testing.T)
		belfrytest.Allocs(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
			return polite(inner), nil
		}, 1)
	}
}
