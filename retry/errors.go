package retry

import (
	"errors"
	"fmt"

	"github.com/belfry-go/belfry"
)

// ErrOutOfBudget says that a failed attempt would have been tried again, but the budget did not pay for it. Whoever meets
// the error should not try again either.
var ErrOutOfBudget = errors.New("retry: out of budget")

// An Error says that a request was to be sent again, and why it was not. It matches whatever Last and Cause match,
// except that once anything was sent it does not match [belfry.ErrRejected], nor what implies it.
type Error struct {
	// Attempts is how many attempts were made.
	Attempts int
	// Outcome is how the last attempt ended, or the last that was sent if any was.
	Outcome belfry.Outcome
	// Last is the error of that attempt, nil if it ended with a response.
	Last error
	// Discarded is the response of that attempt, of the service's response type. Discard was called for it: what
	// it says may be read, but nothing that streams. It is nil if the attempt ended with an error.
	Discarded any
	// Cause is why there was no further attempt: the refusal of Acquire or of a layer inside, the end of the
	// context, [ErrOutOfBudget].
	Cause error
}

// Error says how many attempts were made, how the last one ended, and why there was no other.
func (e *Error) Error() string {
	last := "response"
	if e.Last != nil {
		last = e.Last.Error()
	}
	return fmt.Sprintf("retry: %s after %d attempts: %s; no other: %v", e.Outcome.Kind, e.Attempts, last, e.Cause)
}

// Unwrap returns Last, if there is one, and Cause.
func (e *Error) Unwrap() []error {
	if e.Last == nil {
		return []error{e.Cause}
	}
	return []error{e.Last, e.Cause}
}
