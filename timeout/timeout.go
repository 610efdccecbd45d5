// Package timeout bounds the time that a call may take.
//
// A [Service] gives each call a context that ends after a duration, unless the caller's ends earlier. It never abandons
// a call: at the deadline the context ends, and Call returns when the inner Call has noticed and returned. So an answer
// that is there at the deadline wins, and a call that does not heed its context takes as long as it likes. Readiness is
// that of the inner service. Acquire is not bounded, except by [Config].Wait; the caller's own cancelling passes
// through in any case.
//
// A call costs one allocation, or three with Config.Wait, and one more if its response is streamed; if the caller's
// context ends earlier anyway, none (with Wait, one). No timer is started until somebody asks the context for its Done
// channel: its Err goes by the time.
package timeout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
)

// Err is what an error matches if a deadline of this package caused it, and the cause of a context that ended by one. It
// matches [context.DeadlineExceeded].
var Err error = expired{}

// Config says what the duration bounds besides Call, and who is told.
type Config struct {
	// Wait makes the duration begin with Acquire and bound the wait in it too. A permit is then good until the
	// deadline: a later Call is refused. False means that it begins with Call.
	Wait bool
	// Stream makes the duration bound a streamed response too: the call's context, by which the response is read, then
	// ends at the deadline with the cause Err. False means that the deadline is lifted when Call has returned a
	// response, and the context lives until the response has ended.
	Stream bool
	// OnTimeout is told of each call and each wait that a deadline has failed, with the error that its caller gets, which
	// matches Err. It is called by the caller's goroutine, so by several at once, without a lock and with nothing reserved: it
	// may use the Service, and must not wait for long. A panic in it passes to the caller. A response whose reading ends at
	// the deadline is not told of. Nil means nobody, and costs nothing.
	OnTimeout func(err error)
}

// Validate says whether a Service can be made of d and cfg: d must be above 0.
func Validate(d time.Duration, _ Config) error {
	if d <= 0 {
		return fmt.Errorf("timeout: duration must be above 0, got %v", d)
	}
	return nil
}

// A Service bounds the time of calls.
type Service[Req, Res any] struct {
	inner        belfry.Service[Req, Res]
	d            time.Duration
	cfg          Config
	sem          belfry.Semantics[Req, Res]
	clock        clock
	prompt       bool
	calls, waits atomic.Uint64 // that ended by a deadline
}

// New returns inner with calls that take at most d. It panics with the error of [Validate] if there is one.
func New[Req, Res any](inner belfry.Service[Req, Res], d time.Duration, cfg Config, sem ...belfry.Semantics[Req, Res]) *Service[Req, Res] {
	if err := Validate(d, cfg); err != nil {
		panic(err)
	}
	return &Service[Req, Res]{inner: inner, d: d, cfg: cfg, sem: belfry.SemanticsOf(sem), prompt: !cfg.Wait && belfry.IsPrompt(inner)}
}

// Layer returns a layer that makes [New]. It panics as New does.
func Layer[Req, Res any](d time.Duration, cfg Config, sem ...belfry.Semantics[Req, Res]) belfry.Layer[Req, Res] {
	if err := Validate(d, cfg); err != nil {
		panic(err)
	}
	return func(inner belfry.Service[Req, Res]) belfry.Service[Req, Res] { return New(inner, d, cfg, sem...) }
}

var _ belfry.Service[int, int] = (*Service[int, int])(nil)

// A timed permit remembers the deadline of a Service that bounds waits. It keeps no context, which would bound the call
// by what was meant for the wait.
type timed struct {
	inner belfry.Permit
	at    time.Time
}

// Acquire acquires the inner service. With Config.Wait it fails at the deadline, with an error that matches Err and is
// a refusal.
func (s *Service[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	if !s.cfg.Wait {
		return s.inner.Acquire(ctx)
	}
	at := s.clock.now().Add(s.d)
	permit, err := s.wait(ctx, at)
	if err != nil {
		return belfry.Permit{}, err
	}
	return belfry.NewPermit(&timed{permit, at}), nil
}

func (s *Service[Req, Res]) wait(ctx context.Context, at time.Time) (belfry.Permit, error) {
	if earlier(ctx, at) || errors.Is(ctx.Err(), belfry.ErrNotReady) {
		return s.inner.Acquire(ctx)
	}
	own := &deadline{Context: ctx, at: at}
	defer own.end()
	permit, err := s.inner.Acquire(own)
	if err != nil && own.caused(err) {
		s.waits.Add(1)
		err = s.expired(&exceeded{"room", s.d, belfry.Refuse("timeout", err)})
	}
	return permit, err
}

// Call calls the inner service under a context that ends at the deadline. If that caused an error, the error matches Err
// as well as what it matched before.
func (s *Service[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	at := s.clock.now()
	if !s.cfg.Wait {
		at = at.Add(s.d)
	} else {
		t := permit.Value().(*timed)
		if !at.Before(t.at) {
			s.calls.Add(1)
			s.inner.Release(t.inner)
			var none Res
			return none, s.expired(&belfry.Rejection{Layer: "timeout", Reason: "deadline passed before the call", Err: Err})
		}
		permit, at = t.inner, t.at
	}
	streams := s.sem.Streams()
	fused := streams && !s.cfg.Stream
	if earlier(ctx, at) {
		if !streams || fused || !mayLift(ctx) {
			return s.inner.Call(ctx, permit, req)
		}
		fused = true // the caller's deadline will be lifted, and then this one counts
	}
	return s.bounded(&deadline{Context: ctx, at: at, fused: fused}, permit, req)
}

// bounded calls under own, which it ends when the call is over.
func (s *Service[Req, Res]) bounded(own *deadline, permit belfry.Permit, req Req) (Res, error) {
	streaming := false
	defer func() {
		if !streaming {
			own.end()
		}
	}()
	res, err := s.inner.Call(own, permit, req)
	if err != nil {
		if own.caused(err) {
			s.calls.Add(1)
			err = s.expired(&exceeded{"answer", s.d, err})
		}
		return res, err
	}
	if !s.sem.Streams() {
		return res, nil
	}
	streaming = true
	if !s.cfg.Stream {
		own.lift()
	}
	return s.sem.Finish(res, nil, own.end), nil
}

// Prompt reports whether the inner service is a [belfry.Prompter] that is, unless permits are timed.
func (s *Service[Req, Res]) Prompt(as any) bool { return s.prompt && as == any(s) }

// Release gives the inner service its permit back.
func (s *Service[Req, Res]) Release(permit belfry.Permit) {
	if s.cfg.Wait {
		permit = permit.Value().(*timed).inner
	}
	s.inner.Release(permit)
}

// Stats is what a Service has counted.
type Stats struct {
	// Calls counts the calls that failed by a deadline, those included that came too late to begin.
	Calls uint64
	// Waits counts the waits that failed by a deadline.
	Waits uint64
}

// Stats returns what the Service has counted.
func (s *Service[Req, Res]) Stats() Stats { return Stats{Calls: s.calls.Load(), Waits: s.waits.Load()} }

// expired returns err after telling of it.
func (s *Service[Req, Res]) expired(err error) error {
	if s.cfg.OnTimeout != nil {
		s.cfg.OnTimeout(err)
	}
	return err
}

// earlier reports whether ctx ends at the time at or before.
func earlier(ctx context.Context, at time.Time) bool {
	end, ok := ctx.Deadline()
	return ok && !end.After(at)
}

// caused reports whether the deadline is why a call or a wait failed with err: it has passed, and the context had ended by
// it, so that whoever watched was told; or nobody had been told, and err says that a deadline was exceeded. The latter is
// for code that takes the time from Deadline alone, as a net.Conn does. A cause of Err alone may be another's, further out.
func (d *deadline) caused(err error) bool {
	if time.Until(d.at) > 0 {
		return false
	}
	if std := d.look().std; std != nil && std.Err() != nil {
		return errors.Is(context.Cause(std), Err)
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// An expired is the type of Err. By what it wraps it is a timeout to package net as well.
type expired struct{}

func (expired) Error() string { return "timeout: deadline exceeded" }
func (expired) Unwrap() error { return context.DeadlineExceeded }

// An exceeded is err, and that a deadline caused it.
type exceeded struct {
	what string
	d    time.Duration
	err  error
}

func (e *exceeded) Error() string {
	why := e.err.Error()
	if why == Err.Error() { // the cause of the context, which says nothing new
		return fmt.Sprintf("timeout: no %s within %v", e.what, e.d)
	}
	return fmt.Sprintf("timeout: no %s within %v: %s", e.what, e.d, why)
}

func (e *exceeded) Unwrap() []error { return []error{e.err, Err} }
