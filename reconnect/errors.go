package reconnect

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-go/belfry"
)

const layer = "reconnect"

var (
	errClosed    error = &belfry.Rejection{Layer: layer, Reason: "closed", Err: belfry.ErrClosed}
	errNoMake          = errors.New("reconnect: make must not be nil")
	errNoService       = errors.New("make returned neither a service nor an error")
	errExited          = errors.New("make was ended by runtime.Goexit")
)

// An AttemptError says what became of one attempt to make a service. It is the cause of refusals, found with [errors.AsType], and
// the LastError of [Stats].
//
// It matches [belfry.ErrNotReady], as the next attempt may do better, and what Err matches, with the exception of what would
// be said about the refused call: that its context has ended, or that this service is closed.
type AttemptError struct {
	// Attempt is its number; the first is 1.
	Attempt uint64
	// Lost says that it made a service, which was lost before any call of it had ended without an error.
	Lost bool
	// Err is what make returned, or how the service was lost.
	Err error
}

// Error says which attempt it was and what became of it.
func (e *AttemptError) Error() string {
	if e.Lost {
		return fmt.Sprintf("attempt %d was lost: %v", e.Attempt, e.Err)
	}
	return fmt.Sprintf("attempt %d failed: %v", e.Attempt, e.Err)
}

// Is reports that it is an ErrNotReady, and what Err is. There is no Unwrap, which could make no exception.
func (e *AttemptError) Is(target error) bool {
	switch {
	case target == belfry.ErrNotReady || target == belfry.ErrRejected:
		return true
	case errors.Is(target, belfry.ErrRejected), target == context.Canceled, target == context.DeadlineExceeded:
		return false
	}
	return errors.Is(e.Err, target)
}

// As finds what there is in Err but another's Rejection.
func (e *AttemptError) As(target any) bool {
	if _, ok := target.(**belfry.Rejection); ok {
		return false
	}
	return errors.As(e.Err, target)
}

// A PanicError is the panic of make, with which the attempt has failed.
type PanicError struct {
	// Value is what it panicked with.
	Value any
	// Stack is where.
	Stack []byte
}

// Error says what make panicked with.
func (p *PanicError) Error() string { return fmt.Sprintf("make panicked: %v", p.Value) }

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}
