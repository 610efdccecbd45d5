package stack_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/shed"
	"github.com/belfry-go/belfry/stack"
	"github.com/belfry-go/belfry/timeout"
)

// Each hook is told of what its layer does, as a request meets them.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		tell := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, what)
		}
		note := func(what string) func(error) { return func(error) { tell(what) } }
		admit := func(what string) func(time.Duration) {
			return func(d time.Duration) { tell(fmt.Sprint(what, " after ", d)) }
		}
		backend, inner := belfrytest.NewBackend[int, int](t)
		svc, err := stack.New[int, int]().
			LoadShed(shed.Config{OnReject: note("shed")}).
			Buffer(1, buffer.Config{OnAdmit: admit("buffer"), OnReject: note("buffer full")}).
			ConcurrencyLimit(1, limit.Config{OnAdmit: admit("limit"), OnReject: note("limit full")}).
			Timeout(time.Minute, timeout.Config{OnTimeout: note("too late")}).
			Retry(retry.Config{OnRetry: func(retry.Event) { tell("retry") }}).
			Build(inner)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 3)
		do := func() {
			_, err := belfry.Do(t.Context(), svc, 1)
			ended <- err
		}
		backend.Allow(2)
		go do()
		backend.Expect(1) // the first, which is never answered
		go do()
		synctest.Wait()
		do() // finds no seat
		time.Sleep(time.Minute)
		synctest.Wait()
		backend.Expect(1).Answer(2)
		synctest.Wait()
		for range 3 {
			if err := <-ended; err != nil {
				t.Logf("refused: %v", err) // the hooks are what counts
			}
		}
		want := []string{
			"limit after 0s", "buffer after 0s", // the first
			"limit full",          // the second asks, and queues
			"buffer full", "shed", // the third
			"too late",                              // the first
			"limit after 1m0s", "buffer after 1m0s", // the second
		}
		if !slices.Equal(told, want) {
			t.Errorf("told of\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestMoreThanOneConfigIsRefused(t *testing.T) {
	s := stack.New[int, int]().LoadShed(shed.Config{}, shed.Config{}).ConcurrencyLimit(1, limit.Config{}, limit.Config{})
	_, err := s.Build(belfry.Of(double))
	if err == nil || strings.Count(err.Error(), "at most one Config, got 2") != 2 {
		t.Errorf("got %v", err)
	}
}
