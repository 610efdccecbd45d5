package timeout_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/timeout"
)

// glances are what code may ask of a context before it returns a response.
var glances = map[string]func(context.Context){
	"unwatched": func(context.Context) {},
	"watched":   func(ctx context.Context) { _ = ctx.Done() },
	"derived": func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		_ = ctx
		context.AfterFunc(ctx, cancel)
	},
}

func TestStream(t *testing.T) {
	for name, glance := range glances {
		start := func(t *testing.T, ctx context.Context, cfg timeout.Config) *stream {
			t.Helper()
			svc := timeout.New(belfry.Of(func(ctx context.Context, _ string) (*stream, error) {
				glance(ctx)
				time.Sleep(time.Millisecond)
				return &stream{ctx: ctx}, nil
			}), time.Second, cfg, streams)
			s, err := belfry.Do(ctx, svc, "")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}

		bubble(t, name+": a response is read past the deadline, and its context ends with it", func(t *testing.T) {
			s := start(t, t.Context(), timeout.Config{})
			if end, ok := s.ctx.Deadline(); ok {
				t.Errorf("there is a deadline left, %v", end)
			}
			for range 3 {
				if err := s.read(time.Hour); err != nil {
					t.Error(err)
				}
				if err := s.ctx.Err(); err != nil {
					t.Error(err)
				}
			}
			s.close()
			<-s.ctx.Done()
			if err := s.ctx.Err(); err != context.Canceled {
				t.Errorf("got %v", err)
			}
		})

		bubble(t, name+": the caller's cancelling ends the reading", func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			s := start(t, ctx, timeout.Config{})
			time.AfterFunc(time.Hour, func() { cancel(errBoom) })
			if err := s.read(2 * time.Hour); err != errBoom {
				t.Errorf("got %v", err)
			}
			if err := s.ctx.Err(); err != context.Canceled {
				t.Errorf("got %v", err)
			}
			s.close()
		})

		bubble(t, name+": Err knows of the caller's cancelling at once", func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			s := start(t, ctx, timeout.Config{})
			cancel(errBoom)
			if err, cause := s.ctx.Err(), context.Cause(s.ctx); err != context.Canceled || cause != errBoom {
				t.Errorf("got %v, %v", err, cause)
			}
			s.close()
		})

		bubble(t, name+": the caller's later deadline is left", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			s := start(t, ctx, timeout.Config{})
			want, _ := ctx.Deadline()
			if end, ok := s.ctx.Deadline(); !ok || !end.Equal(want) {
				t.Errorf("got %v, want %v", end, want)
			}
			if err := s.read(2 * time.Hour); err != context.DeadlineExceeded {
				t.Errorf("got %v", err)
			}
			s.close()
		})

		bubble(t, name+": Stream bounds the reading", func(t *testing.T) {
			begin := time.Now()
			s := start(t, t.Context(), timeout.Config{Stream: true})
			if err := s.read(500 * time.Millisecond); err != nil {
				t.Error(err)
			}
			err := s.read(time.Hour)
			took(t, begin, time.Second)
			wantIs(t, err, []error{timeout.Err, context.DeadlineExceeded})
			if err := s.ctx.Err(); err != context.DeadlineExceeded {
				t.Errorf("got %v", err)
			}
			s.close()
			if err := s.ctx.Err(); err != context.DeadlineExceeded {
				t.Errorf("got %v after the end", err)
			}
		})

		bubble(t, name+": with Stream a response that is over ends its context", func(t *testing.T) {
			s := start(t, t.Context(), timeout.Config{Stream: true})
			s.close()
			if err := s.ctx.Err(); err != context.Canceled {
				t.Errorf("got %v", err)
			}
		})
	}

	for name, glance := range glances {
		glanced := belfry.Of(func(ctx context.Context, _ string) (*stream, error) {
			glance(ctx)
			return &stream{ctx: ctx}, nil
		})
		answering := timeout.Layer(time.Second, timeout.Config{}, streams)
		reading := timeout.Layer(time.Minute, timeout.Config{Stream: true}, streams)
		for order, svc := range map[string]belfry.Service[string, *stream]{
			"inside": answering(reading(glanced)), "outside": reading(answering(glanced)),
		} {
			bubble(t, name+": a bound on reading holds "+order+" one on answering", func(t *testing.T) {
				s, err := belfry.Do(t.Context(), svc, "")
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				wantIs(t, s.read(time.Hour), []error{timeout.Err})
				took(t, begin, time.Minute)
				s.close()
			})
		}
	}

	for name, glance := range glances {
		bubble(t, name+": a deadline on answering that ends a call is not laid to one on reading inside", func(t *testing.T) {
			reading := timeout.New(belfry.Of(func(ctx context.Context, _ string) (*stream, error) {
				glance(ctx)
				<-ctx.Done()
				return nil, ctx.Err()
			}), time.Minute, timeout.Config{Stream: true}, streams)
			answering := timeout.New(reading, time.Second, timeout.Config{}, streams)
			_, err := belfry.Do(t.Context(), answering, "")
			if err == nil || err.Error() != "timeout: no answer within 1s: context deadline exceeded" {
				t.Errorf("got %v", err)
			}
			if outer, inner := answering.Stats().Calls, reading.Stats().Calls; outer != 1 || inner != 0 {
				t.Errorf("%d calls ended by the deadline outside, %d by that inside", outer, inner)
			}
		})
	}

	bubble(t, "Done asked before the deadline was lifted, and answered after", func(t *testing.T) {
		caller := &counting{Context: t.Context(), done: make(chan struct{})}
		gate := make(chan struct{})
		svc := timeout.New(belfry.Of(func(ctx context.Context, _ string) (*stream, error) {
			caller.asked = func() { <-gate }
			go ctx.Done()
			synctest.Wait()
			return &stream{ctx: ctx}, nil
		}), time.Second, timeout.Config{}, streams)
		s, err := belfry.Do(caller, svc, "")
		if err != nil {
			t.Fatal(err)
		}
		close(gate)
		synctest.Wait()
		if err := s.read(time.Hour); err != nil {
			t.Error(err)
		}
		s.close()
	})

	bubble(t, "a response that came when the deadline had passed is passed on", func(t *testing.T) {
		svc := timeout.New(belfry.Of(func(ctx context.Context, _ string) (*stream, error) {
			<-ctx.Done()
			return &stream{ctx: ctx}, nil
		}), time.Second, timeout.Config{}, streams)
		s, err := belfry.Do(t.Context(), svc, "")
		if err != nil {
			t.Fatal(err)
		}
		wantIs(t, s.read(time.Hour), []error{timeout.Err})
		s.close()
	})

	bubble(t, "an unwatched deadline that passed during the call does not end the reading", func(t *testing.T) {
		svc := timeout.New(belfry.Of(func(ctx context.Context, _ string) (*stream, error) {
			time.Sleep(time.Hour)
			return &stream{ctx: ctx}, nil
		}), time.Second, timeout.Config{}, streams)
		s, err := belfry.Do(t.Context(), svc, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.read(time.Hour); err != nil {
			t.Error(err)
		}
		s.close()
		synctest.Wait()
	})

	bubble(t, "a panic in Until ends the context", func(t *testing.T) {
		var kept context.Context
		svc := timeout.New(belfry.Of(func(ctx context.Context, _ string) (*stream, error) {
			kept = ctx
			return &stream{ctx: ctx}, nil
		}), time.Second, timeout.Config{}, belfry.Semantics[string, *stream]{
			Until: func(*stream, func()) *stream { panic(errBoom) },
		})
		func() {
			defer func() { _ = recover() }()
			_, _ = belfry.Do(t.Context(), svc, "")
		}()
		if err := kept.Err(); err != context.Canceled {
			t.Errorf("got %v", err)
		}
	})
}
