// Package reconnect makes a service when it is first asked for, and makes it again when it is lost.
//
// A [Service] is ready when it has been made and what was made is ready. The first Acquire starts the first attempt, also
// under [belfry.NoWait]; attempts run in a goroutine of their own, one at a time, and go on with pauses until one succeeds or
// [Service.Close] is called: a caller who leaves stops nothing. After a failed attempt there is a pause with jitter, which
// doubles from failure to failure. Callers wait for the attempt in progress; if it fails they are refused with its error, and
// so are at once those who come during the pause, with the time until it ends. Config.Wait lets them wait instead. An error
// is only told to those whom its attempt has failed: once a service is there, the errors before it are forgotten.
//
// A service is lost when its Acquire or a call fails with [belfry.ErrClosed], or when Config.Remake says that the error of a
// call means so. Any other error of Acquire is about that moment, and passed on. The next attempt starts at once if a call
// of the lost service had ended without an error; else losing it counts as a failure, so that one which is made and is
// no good is not made in a loop. A lost service gets no more calls but those that have a permit of it. When they are over it is
// closed, if it has a method Close() error. Callers who wait in its Acquire go on to its successor.
//
// Callers who wait for a service to be made go on in any order; while there is one, its own order holds. The end of a
// caller's context ends its wait at once, with nothing reserved.
package reconnect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
)

// A Service is a service that is made, and made again. It is safe for concurrent use.
type Service[Req, Res any] struct {
	make  func(context.Context) (belfry.Service[Req, Res], error)
	cfg   Config
	sem   belfry.Semantics[Req, Res]
	until context.Context // ends with Close
	end   context.CancelFunc
	lost  chan struct{} // the goroutine's service was lost: has room for one

	// current is what calls are sent to, nil while there is none. It is written under mu.
	current atomic.Pointer[made[Req, Res]]

	// mu guards what follows. Nothing is called under it. current is not nil if and only if the state is Ready.
	mu      sync.Mutex
	stats   Stats           // but RetryIn
	next    time.Time       // of the next attempt, while there is a pause
	pending *pending        // the attempt in progress, or the next
	values  context.Context // of the call that asked for it
}

// A pending is an attempt that callers wait for.
type pending struct {
	over chan struct{}
	err  *AttemptError // set before over is closed; nil if the service was made, or is closed
}

func newPending() *pending { return &pending{over: make(chan struct{})} }

// New returns a service that is what make has made. It does nothing until it is asked for room.
//
// The ctx of make ends after Config.Timeout and with Close, not with the call that has asked; but its values are those of that
// call, also in further attempts. An attempt whose ctx has ended lasts until make returns, and no other is started before. A
// panic in make fails the attempt, with a [PanicError]. Without sem, a call is over when Call returns. New panics if make is nil
// or Validate fails.
func New[Req, Res any](make func(ctx context.Context) (belfry.Service[Req, Res], error), cfg Config, sem ...belfry.Semantics[Req, Res]) *Service[Req, Res] {
	if make == nil {
		panic(errNoMake)
	}
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	s := &Service[Req, Res]{make: make, cfg: cfg.withDefaults(), sem: belfry.SemanticsOf(sem), lost: newLost(), pending: newPending()}
	s.until, s.end = context.WithCancel(context.Background())
	s.stats.Since = time.Now()
	return s
}

func newLost() chan struct{} { return make(chan struct{}, 1) }

var (
	_ belfry.Service[int, int] = (*Service[int, int])(nil)
	_ io.Closer                = (*Service[int, int])(nil)
)

// Acquire acquires the service that was made, and waits for it if it is not there yet. It adds no allocation if there is room at
// once and the service's own permit is zero, else one for the permit, and five if it waits for room.
func (s *Service[Req, Res]) Acquire(ctx context.Context) (belfry.Permit, error) {
	for {
		m := s.current.Load()
		if m == nil || !m.hold() {
			if err := s.await(ctx); err != nil {
				return belfry.Permit{}, err
			}
			continue
		}
		inner, err := m.obtain(ctx)
		switch {
		case err == nil:
			return m.seal(inner), nil
		case errors.Is(err, errRemade):
		case errors.Is(err, belfry.ErrClosed):
			s.lose(ctx, m, err)
		default:
			return belfry.Permit{}, err
		}
	}
}

// Call calls the service that permit is of, also if that was lost since. If the call's error means that it is lost, the next is
// made; the error is the caller's.
func (s *Service[Req, Res]) Call(ctx context.Context, permit belfry.Permit, req Req) (Res, error) {
	m, inner := open[Req, Res](permit)
	returned := false
	defer func() {
		if !returned {
			m.drop()
		}
	}()
	res, err := m.svc.Call(ctx, inner, req)
	if s.cfg.lost(err) {
		s.lose(ctx, m, err)
	} else if err == nil && !m.proven.Load() {
		m.proven.Store(true)
	}
	returned = true
	return s.sem.Finish(res, err, m.over), err
}

// Release gives permit back to the service that it is of.
func (s *Service[Req, Res]) Release(permit belfry.Permit) {
	m, inner := open[Req, Res](permit)
	defer m.drop()
	m.svc.Release(inner)
}

// Close makes Acquire fail with [belfry.ErrClosed], for those who wait too, and ends the attempt in progress; a service that it
// makes all the same is closed. The present service is closed, now or when the last of its calls is over. Close waits neither
// for make nor for those calls. It returns the error of closing the service if it has done that. Closing again does nothing.
func (s *Service[Req, Res]) Close() error {
	now := time.Now()
	s.mu.Lock()
	if s.stats.State == Closed {
		s.mu.Unlock()
		return nil
	}
	s.enter(Closed, now, nil)
	m := s.current.Swap(nil)
	if m != nil && m.proven.Load() {
		s.stats.Failures = 0
	}
	close(s.pending.over)
	s.mu.Unlock()
	s.end()
	if m != nil && m.retire() {
		return m.close()
	}
	return nil
}

// await waits for the attempt in progress, or to come. If it returns nil there is, or was, a service.
func (s *Service[Req, Res]) await(ctx context.Context) error {
	ended := ctx.Err()
	p := s.ask(ctx)
	switch now := s.Stats(); {
	case now.State == Closed:
		return errClosed
	case now.State == Ready:
		return nil
	case now.State == BackingOff && !s.cfg.Wait && (ended == nil || errors.Is(ended, belfry.ErrNotReady)):
		return refusal("not made", now.LastError, now)
	case ended != nil:
		return refusal("not made yet", ended, now)
	}
	select {
	case <-p.over:
	case <-ctx.Done():
		return refusal("context done while waiting", ctx.Err(), s.Stats())
	}
	if p.err != nil && !s.cfg.Wait {
		return refusal("not made", p.err, s.Stats())
	}
	return nil
}

// ask returns the attempt in progress, or to come, and starts the goroutine that makes it if nobody has.
func (s *Service[Req, Res]) ask(ctx context.Context) *pending {
	values, now := attempt.Detach(ctx), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats.State == Idle {
		s.values = values
		s.enter(Connecting, now, nil)
		go s.run()
	}
	return s.pending
}

// refusal says why there is no service, and what the last attempt has met if cause does not.
func refusal(reason string, cause error, now Stats) error {
	if last := now.LastError; last != nil && last != cause { //nolint:errorlint // the very same
		if _, told := cause.(*AttemptError); !told { //nolint:errorlint // not one of another service
			cause = fmt.Errorf("%w; %v", cause, last) //nolint:errorlint // it is told, and is not what became of the call
		}
	}
	return &belfry.Rejection{Layer: layer, Reason: reason, RetryAfter: now.RetryIn, Err: cause}
}

// lose notes that m is lost, unless it has a successor already.
func (s *Service[Req, Res]) lose(ctx context.Context, m *made[Req, Res], err error) {
	values, u, now := attempt.Detach(ctx), s.cfg.chance(), time.Now()
	s.mu.Lock()
	if s.current.Load() != m {
		s.mu.Unlock()
		return
	}
	s.current.Store(nil)
	s.pending, s.values = newPending(), values
	s.stats.Lost++
	if m.proven.Load() {
		s.stats.Failures = 0
		s.enter(Connecting, now, nil)
	} else {
		s.backOff(now, u, &AttemptError{Attempt: m.attempt, Lost: true, Err: err})
	}
	s.mu.Unlock()
	s.lost <- struct{}{} // has room: the goroutine takes one for each service before it makes another
	if m.retire() {
		go func() { _ = m.close() }()
	}
}

// enter changes the state. mu is held.
func (s *Service[Req, Res]) enter(state State, now time.Time, last error) {
	s.stats.State, s.stats.Since, s.stats.LastError = state, now, last
}

// backOff begins a pause. mu is held.
func (s *Service[Req, Res]) backOff(now time.Time, u float64, err *AttemptError) {
	s.stats.Failures++
	s.next = now.Add(s.cfg.backoff().Delay(s.stats.Failures-1, u))
	s.enter(BackingOff, now, err)
}

// run makes services, until Close. It is the one goroutine.
func (s *Service[Req, Res]) run() {
	s.tell()
	for {
		m := s.attempt()
		s.tell()
		if m != nil {
			select {
			case <-s.lost:
				s.tell()
			case <-s.until.Done():
			}
		}
		if !s.rest() {
			return
		}
	}
}

// rest waits until the next attempt is due, and reports whether there shall be one.
func (s *Service[Req, Res]) rest() bool {
	now := s.Stats()
	if now.State != BackingOff {
		return now.State != Closed
	}
	timer := time.NewTimer(now.RetryIn)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.until.Done():
		return false
	}
	s.mu.Lock()
	if s.stats.State == BackingOff {
		s.enter(Connecting, time.Now(), s.stats.LastError)
	}
	s.mu.Unlock()
	s.tell()
	return true
}

// attempt makes a service, or notes why not.
func (s *Service[Req, Res]) attempt() *made[Req, Res] {
	s.mu.Lock()
	s.stats.Attempts++
	n, values := s.stats.Attempts, s.values
	s.mu.Unlock()
	svc, err := s.try(values)
	if err != nil {
		s.failed(&AttemptError{Attempt: n, Err: err})
		return nil
	}
	return s.succeeded(newMade(svc, n))
}

// try calls make, in a goroutine of its own that may panic or end.
func (s *Service[Req, Res]) try(values context.Context) (svc belfry.Service[Req, Res], err error) {
	ctx, cancel := context.WithTimeout(values, s.cfg.Timeout)
	defer cancel()
	stop := context.AfterFunc(s.until, cancel)
	defer stop()
	err = errExited
	<-alone(func() {
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		if svc, err = s.make(ctx); err == nil && svc == nil {
			err = errNoService
		}
	})
	return svc, err
}

func (s *Service[Req, Res]) failed(err *AttemptError) {
	now, u := time.Now(), s.cfg.chance()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats.State == Closed {
		return
	}
	s.backOff(now, u, err)
	s.pending.err = err
	close(s.pending.over)
	s.pending = newPending()
}

func (s *Service[Req, Res]) succeeded(m *made[Req, Res]) *made[Req, Res] {
	now := time.Now()
	s.mu.Lock()
	if s.stats.State == Closed {
		s.mu.Unlock()
		m.lose()
		_ = m.close()
		return nil
	}
	defer s.mu.Unlock()
	s.current.Store(m)
	s.stats.Made++
	s.values = nil
	s.enter(Ready, now, nil)
	close(s.pending.over)
	s.pending = newPending()
	return m
}

// tell tells OnChange, and waits for it until Close.
func (s *Service[Req, Res]) tell() {
	if s.cfg.OnChange == nil {
		return
	}
	stats := s.Stats()
	if stats.State == Closed {
		return
	}
	select {
	case <-alone(func() {
		defer func() { _ = recover() }()
		s.cfg.OnChange(stats)
	}):
	case <-s.until.Done():
	}
}

// alone runs f in a goroutine, and closes the channel that it returns when f has ended, however it has.
func alone(f func()) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	return ended
}
