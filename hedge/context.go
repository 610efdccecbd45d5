package hedge

import (
	"context"
	"sync"

	"github.com/belfry-go/belfry/internal/attempt"
)

// ErrLost is the cause of the context of an attempt that lost: another one has answered. It matches [context.Canceled].
var ErrLost error = lost{}

type lost struct{}

func (lost) Error() string { return "hedge: another attempt has answered" }
func (lost) Unwrap() error { return context.Canceled }

// A lane is the context of one attempt: the caller's, which can also be ended alone. Most calls never look at more than its
// values, so there is a context of the standard library behind it only once somebody has asked for Done. From then on it
// answers for that one, Value included, so that package context needs no goroutine for a context derived from it.
type lane struct {
	context.Context              // the caller's; after the end only its values are used
	tried           *attempt.Set // shared by all attempts

	mu     sync.Mutex // never held while a method of a context is called
	std    context.Context
	cancel context.CancelCauseFunc // ends std, and is called once; nil before there is one, and after
	after  context.Context         // set when the lane has ended: how
}

// How a lane ends.
var (
	beaten = ended(ErrLost)
	over   = ended(context.Canceled)
)

func ended(why error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	return ctx
}

// now returns the context that answers for the lane, nil if that is the caller's.
func (l *lane) now() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.std == nil {
		return l.after
	}
	return l.std
}

// Done makes the standard context if there is none.
func (l *lane) Done() <-chan struct{} {
	if ctx := l.now(); ctx != nil {
		return ctx.Done()
	}
	return l.standard().Done()
}

// Err returns why the attempt, or the caller's context, has ended.
func (l *lane) Err() error {
	if ctx := l.now(); ctx != nil {
		return ctx.Err()
	}
	return l.Context.Err()
}

// Value answers for the set, unless an attempt further out has one, which knows more; then for the context that stands behind
// the lane, then for the caller's.
func (l *lane) Value(key any) any {
	if attempt.IsKey(key) {
		if set := l.Context.Value(key); set != nil {
			return set
		}
		return l.tried
	}
	if ctx := l.now(); ctx != nil {
		if v := ctx.Value(key); v != nil {
			return v
		}
	}
	return l.Context.Value(key)
}

// standard makes the standard context, outside the lock: of two made at once, the second is dropped.
func (l *lane) standard() context.Context {
	std, cancel := context.WithCancelCause(l.Context)
	ctx, how := l.adopt(std, cancel)
	if how != nil {
		cancel(context.Cause(how))
	}
	return ctx
}

// adopt makes std the context behind the lane, unless there is one, and returns what that is now, and how to end std, if that is due.
func (l *lane) adopt(std context.Context, cancel context.CancelCauseFunc) (now, how context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.std != nil:
		return l.std, over
	case l.after != nil: // the lane has ended meanwhile
		l.std = std
		return std, l.after
	}
	l.std, l.cancel = std, cancel
	return std, nil
}

// end ends the lane, unless it has ended.
func (l *lane) end(how context.Context) {
	l.mu.Lock()
	if l.after == nil {
		l.after = how
	}
	cancel := l.cancel
	l.cancel = nil
	l.mu.Unlock()
	if cancel != nil {
		cancel(context.Cause(how))
	}
}

// finish ends the lane when its response has ended.
func (l *lane) finish() { l.end(over) }
