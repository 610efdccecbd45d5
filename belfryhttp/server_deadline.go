package belfryhttp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/timeout"
)

// A bound is the layer of [ServerStack.Timeout]. Package timeout cannot do this: here the deadline is answered before the
// context ends, lest a handler that heeds it answers first, and a connection that is hijacked has no deadline any more.
type bound struct {
	inner     exchanger
	d         time.Duration
	onTimeout func(error) // may be nil
}

var _ exchanger = (*bound)(nil)

func (b *bound) Acquire(ctx context.Context) (belfry.Permit, error) { return b.inner.Acquire(ctx) }
func (b *bound) Release(permit belfry.Permit)                       { b.inner.Release(permit) }

func (b *bound) Call(ctx context.Context, permit belfry.Permit, x Exchange) (Exchange, error) {
	own, d := newDeadline(ctx, b.d, x.guard)
	defer d.stop()
	x, err := b.inner.Call(own, permit, x)
	if err != nil && b.onTimeout != nil && errors.Is(d.ended(), timeout.Err) {
		b.onTimeout(err)
	}
	return x, err
}

// A deadline ends a handler's context at a time, or with the caller's. The handler's context is one of the standard library's, so that
// what is derived from it costs no goroutine, and the deadline is its parent. None of the library's own would do: one made
// WithDeadline cannot be told to live on, and one that a function has cancelled looks like a client that has left.
type deadline struct {
	context.Context // the caller's
	at              time.Time
	guard           *guard
	timer           *time.Timer
	unfollow        func() bool    // stops waiting for the end of the caller's
	goroutines      sync.WaitGroup // of the timer and of the caller's end
	cancel          func()         // of the handler's
	panicked        any            // in the timer's goroutine

	mu  sync.Mutex // not held while a method of a context is called
	err error      // what ended it; timeout.Err for its time
	end func()     // ends the handler's with what Err and Value say, once
}

// newDeadline returns the context for a handler, and the deadline to be stopped when the call is over.
func newDeadline(ctx context.Context, d time.Duration, g *guard) (context.Context, *deadline) {
	l := &deadline{Context: ctx, at: time.Now().Add(d), guard: g}
	own, cancel := context.WithCancel(l)
	l.cancel = cancel
	l.goroutines.Add(2)
	l.unfollow = context.AfterFunc(ctx, l.follow)
	l.timer = time.AfterFunc(d, l.expire)
	return own, l
}

// stop waits for what is on its way: neither the caller's context nor the ResponseWriter may be used after the call.
func (l *deadline) stop() {
	if l.unfollow() {
		l.goroutines.Done()
	}
	if l.timer.Stop() {
		l.goroutines.Done()
	}
	l.goroutines.Wait()
	l.cancel()
	if l.panicked != nil {
		panic(l.panicked)
	}
}

func (l *deadline) follow() {
	defer l.goroutines.Done()
	l.blow(l.Context.Err())
}

// expire takes the answer, ends the context, and then answers: a client that is slow to take it must not keep the handler from
// hearing of it.
func (l *deadline) expire() {
	defer l.goroutines.Done()
	defer func() { l.panicked = recover() }() // of a ResponseWriter that is not net/http's
	if l.ended() != nil {
		return // the client has left
	}
	mine, exempt := l.guard.expire()
	if exempt {
		return
	}
	l.blow(timeout.Err)
	if mine {
		l.guard.timeOut()
	}
}

func (l *deadline) blow(err error) {
	l.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	l.mu.Unlock()
	l.end()
}

func (l *deadline) ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Deadline returns when the handler's context ends.
func (l *deadline) Deadline() (time.Time, bool) {
	at, ok := l.Context.Deadline()
	if ok && at.Before(l.at) || l.guard.isHijacked() {
		return at, ok
	}
	return l.at, true
}

// Done only says that there is something to wait for. Whoever derives from l uses AfterFunc instead.
func (l *deadline) Done() <-chan struct{} { return never }

// AfterFunc is asked once, for the handler's context.
func (l *deadline) AfterFunc(end func()) (stop func() bool) {
	l.end = end
	return func() bool { return true }
}

// Err returns what the handler's context ends with.
func (l *deadline) Err() error {
	err := l.ended()
	if errors.Is(err, timeout.Err) {
		return context.DeadlineExceeded
	}
	return err
}

// Value answers for the caller's context, except that after the time package context finds the cause in blown.
func (l *deadline) Value(key any) any {
	if errors.Is(l.ended(), timeout.Err) {
		if v := blown.Value(key); v != nil {
			return v
		}
	}
	return l.Context.Value(key)
}

var (
	never = make(chan struct{})
	blown = func() context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(timeout.Err)
		return ctx
	}()
)
