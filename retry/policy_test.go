package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/retry"
)

// A judge is a Policy of functions; a nil one says yes, at once.
type judge struct {
	observe func(a *retry.Attempt[*page]) bool
	retry   func(a *retry.Attempt[*page], next *string) (time.Duration, bool)
}

func (j *judge) Observe(_ context.Context, a *retry.Attempt[*page]) bool {
	return j.observe == nil || j.observe(a)
}

func (j *judge) Retry(_ context.Context, a *retry.Attempt[*page], next *string) (time.Duration, bool) {
	if j.retry == nil {
		return 0, true
	}
	return j.retry(a, next)
}

// always returns a maker of one Policy for all requests.
func always(j *judge) func() retry.Policy[string, *page] {
	return func() retry.Policy[string, *page] { return j }
}

func failed(a *retry.Attempt[*page]) bool { return a.Err != nil }

func TestPolicy(t *testing.T) {
	errOut := errors.New("out of retries")

	bubble(t, "RT1 an error is tried again, the caller waits", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken, nil))
		in.answer = func(_ context.Context, n int, _ string) (*page, error) {
			elapse(time.Second)
			return inTurn(errBroken, nil)(nil, n, "")
		}
		svc := retry.NewPolicy(in, always(&judge{observe: failed}))
		begin := time.Now()
		res, err := belfry.Do(t.Context(), svc, "hello")
		if err != nil || res.status != 200 {
			t.Fatalf("%v, %v", res, err)
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("took %v, want two attempts of 1s", took)
		}
		sameLog(t, in.did(), "acquire", "call hello", "acquire", "call hello")
		res.Close()
	})

	bubble(t, "RT2 after two retries the third error is returned", func(t *testing.T) {
		errs := []error{errors.New("retry 1"), errors.New("retry 2"), errors.New("retry 3")}
		in := newServer(t, 1, inTurn(errs...))
		svc := retry.NewPolicy(in, always(&judge{observe: func(a *retry.Attempt[*page]) bool { return a.Err != nil && a.N <= 2 }}))
		if _, err := belfry.Do(t.Context(), svc, "hello"); err != errs[2] {
			t.Errorf("got %v, want %v itself", err, errs[2])
		}
	})

	bubble(t, "RT3 a policy looks at the error", func(t *testing.T) {
		errReject := errors.New("reject")
		in := newServer(t, 1, inTurn(errBroken, errReject))
		svc := retry.NewPolicy(in, always(&judge{observe: func(a *retry.Attempt[*page]) bool { return !errors.Is(a.Err, errReject) }}))
		if _, err := belfry.Do(t.Context(), svc, "hello"); err != errReject {
			t.Errorf("got %v", err)
		}
		sameLog(t, in.did(), "acquire", "call hello", "acquire", "call hello")
	})

	bubble(t, "RT4 D33 X21 a policy sees a result whose request cannot be copied, and is not asked to retry", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		saw := 0
		svc := retry.NewPolicy(in, always(&judge{
			observe: func(a *retry.Attempt[*page]) bool { saw++; return a.Err == errBroken },
			retry: func(*retry.Attempt[*page], *string) (time.Duration, bool) {
				t.Error("asked to retry")
				return 0, true
			},
		}), pages)
		if _, err := belfry.Do(t.Context(), svc, "once"); err != errBroken {
			t.Errorf("got %v", err)
		}
		if saw != 1 {
			t.Errorf("the policy saw %d results, want 1", saw)
		}
		if got, want := svc.Stats(), (retry.Stats{Calls: 1, Attempts: 1, NotCopyable: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})

	bubble(t, "RT5 X21 a success whose request cannot be copied is returned, and seen", func(t *testing.T) {
		in := newServer(t, 1, inTurn(nil))
		saw := 0
		svc := retry.NewPolicy(in, always(&judge{observe: func(a *retry.Attempt[*page]) bool {
			saw++
			return a.Err != nil
		}}), pages)
		res, err := belfry.Do(t.Context(), svc, "once")
		if err != nil || saw != 1 {
			t.Errorf("%v, seen %d times", err, saw)
		}
		res.Close()
	})

	bubble(t, "RT6 a policy changes requests, and at last the result", func(t *testing.T) {
		in := newServer(t, 1, inTurn(nil))
		svc := retry.NewPolicy(in, always(&judge{
			observe: func(a *retry.Attempt[*page]) bool {
				if a.N == 3 {
					a.Res, a.Err = nil, errOut
				}
				return a.N < 3
			},
			retry: func(_ *retry.Attempt[*page], next *string) (time.Duration, bool) {
				*next = "retrying"
				return 0, true
			},
		}), pages)
		if res, err := belfry.Do(t.Context(), svc, "hello"); err != errOut || res != nil {
			t.Errorf("got %v, %v", res, err)
		}
		sameLog(t, in.did(), "acquire", "call hello", "close 200", "acquire", "call retrying", "close 200", "acquire", "call retrying", "close 200")
	})

	bubble(t, "a change of the request stays for the attempts after it", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		svc := retry.NewPolicy(in, always(&judge{
			observe: func(a *retry.Attempt[*page]) bool { return a.N < 3 },
			retry: func(_ *retry.Attempt[*page], next *string) (time.Duration, bool) {
				*next += "!"
				return 0, true
			},
		}))
		_, _ = belfry.Do(t.Context(), svc, "hello")
		sameLog(t, in.did(), "acquire", "call hello", "acquire", "call hello!", "acquire", "call hello!!")
	})

	bubble(t, "X21 a policy may try again after a success", func(t *testing.T) {
		in := newServer(t, 1, statuses(200, 201))
		svc := retry.NewPolicy(in, always(&judge{observe: func(a *retry.Attempt[*page]) bool { return a.Res.status == 200 }}), pages)
		res, err := belfry.Do(t.Context(), svc, "hello")
		if err != nil || res.status != 201 {
			t.Errorf("%v, %v", res, err)
		}
		res.Close()
	})

	bubble(t, "a policy turns an error into a response", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		fallback := &page{status: 299}
		svc := retry.NewPolicy(in, always(&judge{observe: func(a *retry.Attempt[*page]) bool {
			a.Res, a.Err = fallback, nil
			return false
		}}), pages)
		if res, err := belfry.Do(t.Context(), svc, "hello"); err != nil || res != fallback {
			t.Errorf("%v, %v", res, err)
		}
		if fallback.closed.Load() {
			t.Error("the response of the policy was discarded")
		}
	})

	bubble(t, "a policy that sets an error need not clear the response", func(t *testing.T) {
		in := newServer(t, 1, inTurn(nil))
		svc := retry.NewPolicy(in, always(&judge{observe: func(a *retry.Attempt[*page]) bool {
			a.Err = errOut
			return false
		}}), pages)
		if res, err := belfry.Do(t.Context(), svc, "hello"); err != errOut || res != nil {
			t.Errorf("%v, %v", res, err)
		}
		if in.opened() != 0 {
			t.Error("the response was not discarded")
		}
	})

	bubble(t, "a policy that says no after all", func(t *testing.T) {
		in := newServer(t, 1, statuses(503))
		svc := retry.NewPolicy(in, always(&judge{retry: func(*retry.Attempt[*page], *string) (time.Duration, bool) { return 0, false }}), pages)
		res, err := belfry.Do(t.Context(), svc, "hello")
		if err != nil || res.status != 503 || res.closed.Load() {
			t.Errorf("%v, %v", res, err)
		}
		res.Close()
	})

	// The seed's traces A and B, with the policy's wait of one second and the server's of another.
	bubble(t, "S8 wait, then acquire, then call; each request has a fresh policy", func(t *testing.T) {
		var in *server
		begin := time.Now()
		in = newServer(t, 1, func(_ context.Context, n int, _ string) (*page, error) {
			return inTurn(errBroken, nil, errBroken, errBroken)(nil, n, "")
		})
		in.refuse = func(n int) error {
			if n == 2 {
				if got := time.Since(begin); got != time.Second {
					t.Errorf("acquired after %v, want after the wait of 1s", got)
				}
				elapse(time.Second) // no room yet
			}
			return nil
		}
		svc := retry.NewPolicy(in, func() retry.Policy[string, *page] {
			left := 1
			return &judge{
				observe: func(a *retry.Attempt[*page]) bool { return a.Err != nil && left > 0 },
				retry: func(_ *retry.Attempt[*page], next *string) (time.Duration, bool) {
					left--
					*next += "+"
					return time.Second, true
				},
			}
		})
		res, err := belfry.Do(t.Context(), svc, "hello")
		if err != nil || time.Since(begin) != 2*time.Second {
			t.Fatalf("A: %v, after %v", err, time.Since(begin))
		}
		res.Close()
		sameLog(t, in.did(), "acquire", "call hello", "acquire", "call hello+", "close 200")
		if _, err := belfry.Do(t.Context(), svc, "again"); err != errBroken {
			t.Errorf("B: %v", err)
		}
		sameLog(t, in.did(), "acquire", "call again", "acquire", "call again+")
	})

	bubble(t, "S9 what a policy counts does not leak into the next request", func(t *testing.T) {
		in := newServer(t, 1, inTurn(errBroken))
		var seen []int
		svc := retry.NewPolicy(in, func() retry.Policy[string, *page] {
			count := 0
			return &judge{
				observe: func(*retry.Attempt[*page]) bool { count++; seen = append(seen, count); return count < 2 },
			}
		})
		for range 3 {
			_, _ = belfry.Do(t.Context(), svc, "hello")
		}
		if want := []int{1, 2, 1, 2, 1, 2}; !slices.Equal(seen, want) {
			t.Errorf("counted %v, want %v", seen, want)
		}
	})

	bubble(t, "a policy cannot outwait the context", func(t *testing.T) {
		in := newServer(t, 1, statuses(503))
		svc := retry.NewPolicy(in, always(&judge{retry: func(*retry.Attempt[*page], *string) (time.Duration, bool) { return time.Second, true }}), pages)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		res, err := belfry.Do(ctx, svc, "hello")
		if err != nil || res.status != 503 || res.closed.Load() || time.Since(begin) != 0 {
			t.Fatalf("%v, %v after %v", res, err, time.Since(begin))
		}
		res.Close()
		if got := svc.Stats().OutOfTime; got != 1 {
			t.Errorf("%d out of time", got)
		}
	})

	bubble(t, "a policy's error cannot say that nothing was sent, nor hide it", func(t *testing.T) {
		for _, sent := range []bool{true, false} {
			in := newServer(t, 1, inTurn(errBroken))
			if !sent {
				in.answer = inTurn(undialled())
			}
			svc := retry.NewPolicy(in, always(&judge{observe: func(a *retry.Attempt[*page]) bool {
				a.Err = errors.Join(errOut, belfry.ErrNotReady)
				if !sent {
					a.Err = errOut
				}
				return false
			}}))
			_, err := belfry.Do(t.Context(), svc, "hello")
			if !errors.Is(err, errOut) || errors.Is(err, belfry.ErrRejected) == sent {
				t.Errorf("sent %v: %v matches ErrRejected: %v", sent, err, !sent)
			}
		}
	})
}
