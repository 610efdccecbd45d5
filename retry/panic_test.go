package retry_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/retry"
)

// A fault ends the goroutine at one place of the user's code.
type fault struct {
	at     string
	goexit bool
}

func (f fault) trip(here string) {
	switch {
	case here != f.at:
	case f.goexit:
		runtime.Goexit()
	default:
		panic("boom")
	}
}

// The parts of user code that can go wrong, and what must be left then: nothing.
func TestPanics(t *testing.T) {
	everywhere := []string{"Copy", "Classify", "Discard", "first Call", "second Call", "second Acquire", "OnRetry"}
	ofPolicies := []string{"making the policy", "Observe", "Retry"}
	for _, c := range []struct {
		name   string
		places []string
		wrap   func(fault, *server, belfry.Semantics[string, *page]) belfry.Service[string, *page]
	}{
		{"New", everywhere, faultyStandard},
		{"NewPolicy", slices.Concat(everywhere, ofPolicies), faultyPolicy},
	} {
		for _, at := range c.places {
			for _, goexit := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, Goexit %v", c.name, at, goexit), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := fault{at, goexit}
						in := f.server(t)
						leavesNothing(t, in, c.wrap(f, in, f.semantics()))
					})
				})
			}
		}
	}
}

func (f fault) server(t *testing.T) *server {
	in := newServer(t, 1, func(_ context.Context, n int, _ string) (*page, error) {
		f.trip(map[int]string{1: "first Call", 2: "second Call"}[n])
		return &page{status: 503}, nil
	})
	in.refuse = func(n int) error {
		if n == 2 {
			f.trip("second Acquire")
		}
		return nil
	}
	return in
}

func (f fault) semantics() belfry.Semantics[string, *page] {
	return belfry.Semantics[string, *page]{
		Classify: func(res *page, err error) belfry.Outcome { f.trip("Classify"); return pages.Classify(res, err) },
		Copy:     func(req string) (string, bool) { f.trip("Copy"); return req, true },
		Discard:  func(res *page) { res.Close(); f.trip("Discard") },
	}
}

func (f fault) config() retry.Config {
	return retry.Config{OnRetry: func(retry.Event) { f.trip("OnRetry") }}
}

func faultyStandard(f fault, in *server, sem belfry.Semantics[string, *page]) belfry.Service[string, *page] {
	return retry.New(in, f.config(), sem)
}

func faultyPolicy(f fault, in *server, sem belfry.Semantics[string, *page]) belfry.Service[string, *page] {
	standard := retry.Standard[string, *page](f.config())
	return retry.NewPolicy(in, func() retry.Policy[string, *page] {
		f.trip("making the policy")
		inner := standard()
		return &judge{
			observe: func(a *retry.Attempt[*page]) bool {
				f.trip("Observe")
				return inner.Observe(context.Background(), a)
			},
			retry: func(a *retry.Attempt[*page], next *string) (time.Duration, bool) {
				f.trip("Retry")
				return inner.Retry(context.Background(), a, next)
			},
		}
	}, sem)
}

// leavesNothing fails if the call returns, or leaves a place taken or a response open.
func leavesNothing(t *testing.T, in *server, svc belfry.Service[string, *page]) {
	t.Helper()
	returned := false
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { _ = recover() }()
		_, _ = belfry.Do(t.Context(), svc, "hello")
		returned = true
	})
	wg.Wait()
	if returned {
		t.Error("nothing happened")
	}
	if len(in.places) != 0 || in.opened() != 0 {
		t.Errorf("%d places taken, %d responses open", len(in.places), in.opened())
	}
}
