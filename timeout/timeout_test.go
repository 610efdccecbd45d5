package timeout_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/timeout"
)

func TestValidate(t *testing.T) {
	t.Run("X15 a zero duration is refused", func(t *testing.T) {
		for d, want := range map[time.Duration]string{
			0:            "timeout: duration must be above 0, got 0s",
			-time.Second: "timeout: duration must be above 0, got -1s",
		} {
			if err := timeout.Validate(d, timeout.Config{}); err == nil || err.Error() != want {
				t.Errorf("got %v, want %v", err, want)
			}
			for name, f := range map[string]func(){
				"New":   func() { timeout.New(heedful(0), d, timeout.Config{}) },
				"Layer": func() { timeout.Layer[string, string](d, timeout.Config{}) },
			} {
				func() {
					defer func() {
						if err, ok := recover().(error); !ok || err.Error() != want {
							t.Errorf("%s: got %v, want %v", name, err, want)
						}
					}()
					f()
				}()
			}
		}
		if err := timeout.Validate(1, timeout.Config{}); err != nil {
			t.Error(err)
		}
	})
}

func TestCall(t *testing.T) {
	bubble(t, "an answer in time", func(t *testing.T) {
		svc := timeout.Layer[string, string](time.Second, timeout.Config{})(heedful(999 * time.Millisecond))
		if res, err := belfry.Do(t.Context(), svc, "hello"); res != "hello" || err != nil {
			t.Errorf("got %q, %v", res, err)
		}
	})

	bubble(t, "X15 an answer that is there at the deadline wins, and so does a later one", func(t *testing.T) {
		for _, late := range []time.Duration{0, time.Hour} {
			svc := timeout.New(belfry.Of(func(_ context.Context, req string) (string, error) {
				time.Sleep(time.Second + late)
				return req, nil
			}), time.Second, timeout.Config{})
			begin := time.Now()
			if res, err := belfry.Do(t.Context(), svc, "hello"); res != "hello" || err != nil {
				t.Errorf("got %q, %v", res, err)
			}
			took(t, begin, time.Second+late)
		}
	})

	// However the code under it learns of the deadline, the error says that there was one.
	for name, inner := range map[string]func(ctx context.Context, req string) (string, error){
		"waiting for Done": func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		},
		"waiting for Done, and losing the cause": func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", errBoom
		},
		"passing on the cause": func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		},
		"asking Err": func(ctx context.Context, _ string) (string, error) {
			for ctx.Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			return "", errBoom
		},
		"asking for the cause": func(ctx context.Context, _ string) (string, error) {
			for context.Cause(ctx) == nil {
				time.Sleep(10 * time.Millisecond)
			}
			return "", fmt.Errorf("stopped: %w", context.Cause(ctx))
		},
		"a derived context": func(ctx context.Context, _ string) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			<-ctx.Done()
			return "", ctx.Err()
		},
		"the time alone, in a connection": func(ctx context.Context, _ string) (string, error) {
			here, there := net.Pipe()
			defer func() { _, _ = here.Close(), there.Close() }()
			end, _ := ctx.Deadline()
			if err := here.SetDeadline(end); err != nil {
				return "", err
			}
			_, err := here.Read(make([]byte, 1))
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				return "", fmt.Errorf("no deadline, but %w", err)
			}
			return "", err
		},
		"the time alone, in a select": func(ctx context.Context, _ string) (string, error) {
			end, _ := ctx.Deadline()
			time.Sleep(time.Until(end))
			return "", context.DeadlineExceeded
		},
	} {
		bubble(t, "the deadline is heeded by "+name, func(t *testing.T) {
			for _, sem := range []belfry.Semantics[string, string]{{}, {Until: func(res string, done func()) string { done(); return res }}} {
				svc := timeout.New(belfry.Of(inner), time.Second, timeout.Config{}, sem)
				begin := time.Now()
				_, err := belfry.Do(t.Context(), svc, "hello")
				took(t, begin, time.Second)
				wantIs(t, err, []error{timeout.Err, context.DeadlineExceeded}, belfry.ErrRejected, context.Canceled)
				if !strings.HasPrefix(err.Error(), "timeout: no answer within 1s") || strings.Count(err.Error(), "timeout:") > 1+strings.Count(err.Error(), "stopped") {
					t.Errorf("got %q", err)
				}
				if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() {
					t.Errorf("%v is no timeout to package net", err)
				}
				if got := svc.Stats(); got.Calls != 1 || got.Waits != 0 {
					t.Errorf("got %+v", got)
				}
			}
		})
	}

	bubble(t, "the time alone, with a timer about to fire", func(t *testing.T) {
		svc := timeout.New(belfry.Of(func(ctx context.Context, _ string) (string, error) {
			end, _ := ctx.Deadline()
			timer := time.NewTimer(time.Until(end))
			_ = ctx.Done()
			<-timer.C
			return "", os.ErrDeadlineExceeded
		}), time.Second, timeout.Config{})
		for range 100 {
			_, err := belfry.Do(t.Context(), svc, "")
			wantIs(t, err, []error{timeout.Err, os.ErrDeadlineExceeded})
		}
	})

	bubble(t, "the error of the call is kept", func(t *testing.T) {
		svc := timeout.New(belfry.Of(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "half", errBoom
		}), time.Second, timeout.Config{})
		res, err := belfry.Do(t.Context(), svc, "")
		wantIs(t, err, []error{timeout.Err, errBoom})
		if res != "half" || err.Error() != "timeout: no answer within 1s: boom" {
			t.Errorf("got %q, %q", res, err)
		}
	})

	bubble(t, "an error that the deadline has not caused passes", func(t *testing.T) {
		for d, want := range map[time.Duration]error{
			time.Millisecond: errBoom,
			time.Second:      errBoom, // at the deadline, unwatched
			time.Hour:        errBoom,
			2:                context.DeadlineExceeded, // somebody else's
		} {
			svc := timeout.New(belfry.Of(func(context.Context, string) (string, error) {
				time.Sleep(d)
				return "", want
			}), time.Second, timeout.Config{})
			if _, err := belfry.Do(t.Context(), svc, ""); err != want {
				t.Errorf("after %v: got %v, want %v", d, err, want)
			}
			if got := svc.Stats(); got.Calls != 0 {
				t.Errorf("got %+v", got)
			}
		}
	})

	bubble(t, "a call is never abandoned", func(t *testing.T) {
		svc := timeout.New(belfry.Of(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			time.Sleep(time.Minute) // cleans up
			return "", ctx.Err()
		}), time.Second, timeout.Config{})
		begin := time.Now()
		_, err := belfry.Do(t.Context(), svc, "")
		took(t, begin, time.Second+time.Minute)
		wantIs(t, err, []error{timeout.Err})
	})

	bubble(t, "a refusal inside Call stays a refusal", func(t *testing.T) {
		late := &lateLayer{limit.NewConcurrency(heedful(0), limit.NewLimiter(0))}
		svc := timeout.New[string, string](late, time.Second, timeout.Config{})
		_, err := belfry.Do(t.Context(), svc, "")
		wantIs(t, err, []error{timeout.Err, context.DeadlineExceeded, belfry.ErrRejected})
		if r, ok := errors.AsType[*belfry.Rejection](err); !ok || r.Layer != "limit" {
			t.Errorf("got %v", err)
		}
	})

	bubble(t, "the caller's cancelling comes through", func(t *testing.T) {
		for _, sem := range []belfry.Semantics[string, string]{{}, {Until: func(res string, done func()) string { done(); return res }}} {
			ctx, cancel := context.WithCancelCause(t.Context())
			var seen error
			svc := timeout.New[string, string](spy{Service: heedful(time.Hour), call: func(ctx context.Context) {
				context.AfterFunc(ctx, func() { seen = context.Cause(ctx) })
			}}, time.Second, timeout.Config{}, sem)
			time.AfterFunc(time.Millisecond, func() { cancel(errBoom) })
			begin := time.Now()
			_, err := belfry.Do(ctx, svc, "")
			took(t, begin, time.Millisecond)
			wantIs(t, err, []error{context.Canceled}, timeout.Err, belfry.ErrRejected)
			synctest.Wait()
			if seen != errBoom {
				t.Errorf("the cause was %v, want the caller's", seen)
			}
		}
	})

	bubble(t, "cancelling before the deadline counts, also if the call returns after it", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		svc := timeout.New(belfry.Of(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			time.Sleep(time.Hour)
			return "", ctx.Err()
		}), time.Second, timeout.Config{})
		time.AfterFunc(time.Millisecond, cancel)
		_, err := belfry.Do(ctx, svc, "")
		wantIs(t, err, []error{context.Canceled}, timeout.Err)
	})

	bubble(t, "the caller's earlier deadline is the caller's", func(t *testing.T) {
		for _, parent := range []time.Duration{time.Second, 2 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), parent)
			svc := timeout.New[string, string](spy{Service: heedful(time.Hour), call: func(got context.Context) {
				if got != ctx {
					t.Error("the call has another context than the caller's")
				}
			}}, 2*time.Second, timeout.Config{})
			_, err := belfry.Do(ctx, svc, "")
			wantIs(t, err, []error{context.DeadlineExceeded}, timeout.Err)
			cancel()
		}
	})

	t.Run("the context ends with the call, however it ends", func(t *testing.T) {
		for name, f := range map[string]func(){
			"a result": func() {},
			"a panic":  func() { panic(errBoom) },
			"Goexit":   runtime.Goexit,
		} {
			for _, watched := range []bool{false, true} {
				var kept context.Context
				svc := timeout.New[string, string](spy{call: func(ctx context.Context) {
					kept = ctx
					if watched {
						_ = ctx.Done()
					}
					f()
				}}, time.Hour, timeout.Config{})
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { _ = recover() }()
					_, _ = belfry.Do(t.Context(), svc, "")
				}()
				<-ended
				select {
				case <-kept.Done():
				default:
					t.Errorf("%s, watched %v: the context lives on", name, watched)
				}
				if err := kept.Err(); err != context.Canceled {
					t.Errorf("%s, watched %v: got %v", name, watched, err)
				}
			}
		}
	})
}
