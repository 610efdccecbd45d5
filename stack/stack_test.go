package stack_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/belfrytest"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/stack"
	"github.com/belfry-go/belfry/timeout"
)

// noting returns a layer that notes its name on the way in and on the way out.
func noting(name string, log *[]string) belfry.Layer[int, int] {
	return func(inner belfry.Service[int, int]) belfry.Service[int, int] {
		return belfry.Around(inner, func(ctx context.Context, req int, next *belfry.Next[int, int]) (int, error) {
			*log = append(*log, name+" in")
			defer func() { *log = append(*log, name+" out") }()
			return next.Call(ctx, req)
		})
	}
}

func double(_ context.Context, n int) (int, error) { return 2 * n, nil }

func TestOrder(t *testing.T) {
	t.Run("DX1 an empty stack returns the same service", func(t *testing.T) {
		svc := &limit.Concurrency[int, int]{}
		got, err := stack.New[int, int]().Build(svc)
		if got != belfry.Service[int, int](svc) || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("DX2 the layer added first is outermost", func(t *testing.T) {
		var log []string
		svc, err := stack.New[int, int]().Layer("a", noting("a", &log)).Layer("b", noting("b", &log)).Build(belfry.Of(double))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := belfry.Do(t.Context(), svc, 4); got != 8 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		if got := strings.Join(log, ", "); got != "a in, b in, b out, a out" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("B1 maps outside and inside a stack of buffer, limit and retry", func(t *testing.T) {
		backend, inner := belfrytest.NewBackend[bool, string](t)
		backend.Allow(1)
		compared := belfry.MapResponse(inner, func(s string) bool { return s == "world" })
		stacked, err := stack.New[bool, bool]().Buffer(5).ConcurrencyLimit(5).Retry(retry.Config{MaxAttempts: 1}).Build(compared)
		if err != nil {
			t.Fatal(err)
		}
		svc := belfry.MapRequest(stacked, func(s string) bool { return s == "hello" })
		ended := make(chan error, 1)
		go func() {
			got, err := belfry.Do(t.Context(), svc, "hello")
			if err == nil && !got {
				err = errors.New("the response was not compared")
			}
			ended <- err
		}()
		backend.Expect(true).Answer("world")
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Run("descendants of one stack do not disturb each other", func(t *testing.T) {
		base := stack.New[int, int]()
		for range 6 { // of all lengths, for some would have room for one more step, to share
			a, b := base.ConcurrencyLimit(3), base.ConcurrencyLimit(4)
			if a.String() == b.String() || strings.Contains(base.String(), "3") {
				t.Errorf("base %s\na %s\nb %s", base, a, b)
			}
			base = base.ConcurrencyLimit(1)
		}
	})
}

func TestString(t *testing.T) {
	l := limit.NewLimiter(3)
	s := stack.New[int, int]().
		LoadShed().
		Buffer(64, buffer.Config{MaxWait: time.Second}).
		Buffer(8, buffer.Config{Order: buffer.CoDel, Target: time.Millisecond, Interval: time.Minute}).
		ConcurrencyLimit(500).
		Limiter(l).
		Timeout(10*time.Second, timeout.Config{Wait: true, Stream: true}).
		Retry(retry.Config{}).
		Retry(retry.Config{
			MaxAttempts: 5, Backoff: retry.Backoff{Min: time.Second, Max: time.Minute, Jitter: 0.5},
			MaxRetryAfter: time.Hour, Budget: budget.Unlimited(),
		}).
		RetryPolicy(retry.Standard[int, int](retry.Config{})).
		Layer("mine", noting("", new([]string)))
	const want = "load shed → buffer(64, FIFO, max wait 1s) → buffer(8, CoDel, target 1ms, interval 1m0s) → " +
		"concurrency limit(500) → concurrency limit(3, shared) → timeout(10s, with wait, with stream) → retry(3 attempts) → " +
		"retry(5 attempts, min pause 1s, max pause 1m0s, jitter 0.5, max retry-after 1h0m0s, own budget) → retry(own policy) → mine"
	if got := fmt.Sprint(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if err := l.Resize(7); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(s); !strings.Contains(got, "concurrency limit(7, shared)") {
		t.Errorf("after a Resize: %s", got)
	}
	if got := stack.New[int, int]().String(); got != "no layers" {
		t.Errorf("empty: %s", got)
	}
}

func TestMistakes(t *testing.T) {
	leaf := belfry.Of(double)
	shared := limit.NewLimiter(1)
	for _, c := range []struct {
		name  string
		stack stack.Stack[int, int]
		svc   belfry.Service[int, int]
		want  []string
	}{
		{"no service", stack.New[int, int](), nil, []string{"service must not be nil"}},
		{"not made by New", stack.Stack[int, int]{}, leaf, []string{"made without New"}},
		{
			"numbers out of range, all of them", stack.New[int, int]().Buffer(0).ConcurrencyLimit(-1).Timeout(0).Retry(retry.Config{MaxAttempts: -1}), leaf,
			[]string{"layer 1, buffer: ", "at least 1", "layer 2, concurrency limit: ", "at least 0", "layer 3, timeout: ", "above 0", "layer 4, retry: ", "max attempts"},
		},
		{"one Limiter twice", stack.New[int, int]().Limiter(shared).Timeout(time.Second).Limiter(shared), leaf, []string{"layer 3", "same Limiter as in layer 1"}},
		{
			"nil things", stack.New[int, int]().Layer("mine", nil).Limiter(nil).Budget(nil).RetryPolicy(nil), leaf,
			[]string{"layer 1, mine", "layer 2, concurrency limit", "layer 3, budget", "layer 4, retry"},
		},
		{"a mistake of whoever prepared it", stack.New[int, int]().Fail("mine", nil).Fail("yours", errors.New("boom")), leaf, []string{"layer 1, yours: boom"}},
		{"two Configs", stack.New[int, int]().Timeout(time.Second, timeout.Config{}, timeout.Config{}), leaf, []string{"at most one Config, got 2"}},
		{"a layer without a result", stack.New[int, int]().Layer("mine", func(belfry.Service[int, int]) belfry.Service[int, int] { return nil }), leaf, []string{"mine returned no service"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			svc, err := c.stack.Build(c.svc)
			if svc != nil || err == nil {
				t.Fatalf("built %v, %v", svc, err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
		})
	}
}

func TestBuildTwice(t *testing.T) {
	s := stack.New[int, int]().ConcurrencyLimit(1)
	a, _ := s.Build(belfry.Of(double))
	b, _ := s.Build(belfry.Of(double))
	ra, err := belfry.Reserve(belfry.NoWait(t.Context()), a)
	if err != nil {
		t.Fatal(err)
	}
	defer ra.Release()
	rb, err := belfry.Reserve(belfry.NoWait(t.Context()), b)
	if err != nil {
		t.Errorf("the limit of one build is taken in another: %v", err)
	}
	rb.Release()

	l := limit.NewLimiter(1)
	shared := stack.New[int, int]().Limiter(l)
	a, _ = shared.Build(belfry.Of(double))
	b, _ = shared.Build(belfry.Of(double))
	r, err := belfry.Reserve(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := belfry.TryDo(t.Context(), b, 1); !errors.Is(err, belfry.ErrNotReady) {
		t.Errorf("a shared Limiter is not shared: %v", err)
	}
	r.Release()
}

// The retries of all that a stack builds draw on one budget.
func TestOneBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		fail := belfry.Of(func(context.Context, int) (int, error) { return 0, boom })
		b := budget.New(budget.Config{Reserve: 0.3, Ratio: 1e-9}) // three extra attempts in ten seconds
		s := stack.New[int, int]().Retry(retry.Config{MaxAttempts: 2}).Budget(b)
		var attempts uint64
		for range 5 {
			svc, err := s.Build(fail)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := belfry.Do(t.Context(), svc, 1); !errors.Is(err, boom) {
				t.Errorf("got %v", err)
			}
			attempts += svc.(*retry.Service[int, int]).Stats().Attempts
		}
		if attempts != 5+3 {
			t.Errorf("%d attempts for 5 requests and a budget of 3", attempts)
		}
	})
}

// The Semantics count for all layers, wherever they were given.
func TestSemantics(t *testing.T) {
	var mu sync.Mutex
	var ends []func()
	sem := belfry.Semantics[int, int]{Until: func(res int, done func()) int {
		mu.Lock()
		defer mu.Unlock()
		ends = append(ends, done)
		return res
	}}
	svc, err := stack.New[int, int]().ConcurrencyLimit(1).Semantics(sem).Build(belfry.Of(double))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := belfry.Do(t.Context(), svc, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := belfry.TryDo(t.Context(), svc, 1); !errors.Is(err, belfry.ErrNotReady) {
		t.Errorf("an open response frees its place: %v", err)
	}
	ends[0]()
	if _, err := belfry.TryDo(t.Context(), svc, 1); err != nil {
		t.Errorf("after its end: %v", err)
	}
	ends[1]()
}

// The stack of the README keeps the contract as one layer.
func TestContract(t *testing.T) {
	belfrytest.TestLayer(t, func(_ testing.TB, inner belfry.Service[int, int]) (belfry.Service[int, int], func()) {
		svc, err := stack.New[int, int]().
			LoadShed().
			Buffer(4).
			ConcurrencyLimit(3).
			Timeout(time.Hour).
			Retry(retry.Config{MaxAttempts: 1}).
			Build(inner)
		if err != nil {
			t.Error(err)
		}
		return svc, nil
	}, belfrytest.Late, belfrytest.Sheds, belfrytest.Caps(4))
}

func Example() {
	svc, err := stack.New[string, string]().
		LoadShed().
		ConcurrencyLimit(8).
		Timeout(time.Second).
		Build(belfry.Of(func(_ context.Context, name string) (string, error) { return "hello " + name, nil }))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(belfry.Do(context.Background(), svc, "bell"))
	// Output: hello bell <nil>
}

// A stack prints its layers in the order in which a request meets them.
func ExampleStack_String() {
	fmt.Println(stack.New[string, string]().LoadShed().Buffer(64).ConcurrencyLimit(8).Timeout(time.Second))
	// Output: load shed → buffer(64, FIFO) → concurrency limit(8) → timeout(1s)
}

// Mistakes are collected, and found when the stack is built.
func ExampleStack_Build() {
	_, err := stack.New[string, string]().Buffer(0).Timeout(-time.Second).Build(nil)
	for line := range strings.Lines(err.Error()) {
		fmt.Println(strings.SplitN(strings.TrimSpace(line), ": ", 3)[1])
	}
	// Output:
	// service must not be nil
	// layer 1, buffer
	// layer 2, timeout
}
