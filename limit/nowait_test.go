package limit_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
)

// TestNoWait holds on to what is free and spoken for by nobody.
func TestNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, inner := newBackend()
		svc := limit.NewConcurrency(inner, limit.NewLimiter(1))
		now := belfry.NoWait(t.Context())
		permit, err := svc.Acquire(now)
		if err != nil {
			t.Fatal(err)
		}
		waiter := acquire(t.Context(), svc)
		synctest.Wait()
		svc.Release(permit) // handed to the waiter, who may not have noticed yet
		if _, err := svc.Acquire(now); !errors.Is(err, belfry.ErrNotReady) {
			t.Errorf("barged in before a waiter: %v", err)
		}
		svc.Release(done(t, "waiter", waiter).permit)
		permit, err = svc.Acquire(now)
		if err != nil {
			t.Fatal(err)
		}
		svc.Release(permit)
	})
}

// A lateContext runs f when it is asked for its error, which is between the first look for a place and the line.
type lateContext struct {
	context.Context
	f func()
}

func (c lateContext) Err() error {
	c.f()
	return c.Context.Err()
}

// TestFreedBeforeTheLine does not wait for a place that got free just before it would have waited.
func TestFreedBeforeTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, inner := newBackend()
		svc := limit.NewConcurrency(inner, limit.NewLimiter(1))
		permit, _ := svc.Acquire(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		permit, err := svc.Acquire(lateContext{ctx, sync.OnceFunc(func() { svc.Release(permit) })})
		if err != nil {
			t.Fatal(err)
		}
		svc.Release(permit)
	})
}
