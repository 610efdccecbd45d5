package belfry

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The conditions that a caller may want to tell apart, to be found with [errors.Is].
var (
	// ErrRejected says that the request was refused before any attempt of it was sent. It may be sent elsewhere, or later.
	ErrRejected error = &condition{text: "belfry: rejected"}

	// ErrNotReady says that there is no room at this moment. It implies ErrRejected.
	ErrNotReady error = &condition{text: "belfry: not ready", implies: ErrRejected}

	// ErrClosed says that the service will never take a request again. It implies ErrRejected, and is the only
	// error of Acquire that is final.
	ErrClosed error = &condition{text: "belfry: closed", implies: ErrRejected}

	// ErrSpent says that a permit was to be used a second time. That is a mistake of the caller, not a state of
	// the service; nothing was sent, and nobody else's room was freed.
	ErrSpent = errors.New("belfry: permit already spent")
)

// A condition is a sentinel error that may imply a wider one.
type condition struct {
	text    string
	implies error
}

func (c *condition) Error() string { return c.text }
func (c *condition) Unwrap() error { return c.implies }

// A Rejection is a refusal made by a layer before anything was sent. It matches [ErrRejected] and whatever its
// cause matches; [errors.AsType] finds it. Numbers that a layer does not know are zero.
type Rejection struct {
	// Layer names the layer that refused: "limit", "buffer", "breaker".
	Layer string
	// Reason says in a few words why, such as "full" or "queued too long". It may be empty: the cause says it.
	Reason string
	// InFlight is the number of calls in the layer when it refused.
	InFlight int
	// Limit is the number that the layer allows.
	Limit int
	// RetryAfter is how long to wait before another try is worth it; 0 means unknown.
	RetryAfter time.Duration
	// Err is the cause: [ErrNotReady], [ErrClosed], the error of a context, or what the layer met.
	Err error
}

// Error says who refused, why, and with how many calls in flight.
func (r *Rejection) Error() string {
	var b strings.Builder
	b.WriteString(r.Layer)
	b.WriteString(": ")
	switch {
	case r.Reason == "":
		b.WriteString("refused")
	default:
		b.WriteString(r.Reason)
	}
	if r.Limit > 0 {
		fmt.Fprintf(&b, " (%d of %d in flight)", r.InFlight, r.Limit)
	}
	if r.RetryAfter > 0 {
		fmt.Fprintf(&b, ", retry after %v", r.RetryAfter)
	}
	if r.Err != nil {
		b.WriteString(": ")
		b.WriteString(r.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (r *Rejection) Unwrap() error { return r.Err }

// Is reports that every Rejection is an [ErrRejected].
func (r *Rejection) Is(target error) bool { return target == ErrRejected }

// Refuse returns err as a refusal of layer: err itself if it already matches [ErrRejected] (the layer that really
// refused knows best), else a [Rejection] around it. It is for errors of Acquire, where nothing was sent. Refuse
// of nil is nil.
func Refuse(layer string, err error) error {
	if err == nil || errors.Is(err, ErrRejected) {
		return err
	}
	return &Rejection{Layer: layer, Err: err}
}

// Sent returns err as the error of a request that has been sent: it no longer matches [ErrRejected], nor any error that
// implies it, such as [ErrNotReady] and [ErrClosed], and holds no [Rejection], but still matches everything else that it
// did. A layer needs it where it has sent an attempt and reports what stopped the next one; [Func] uses it on all its
// errors, so that a rejection which the function met on its own errands is not taken for the caller's.
// An error that does not match ErrRejected is returned as it is.
func Sent(err error) error {
	if err == nil || !errors.Is(err, ErrRejected) {
		return err
	}
	return &sent{err}
}

// A sent hides the rejections in err. It has no Unwrap on purpose: its Is and As look inside with that one exception.
type sent struct{ err error }

func (s *sent) Error() string { return s.err.Error() }

func (s *sent) Is(target error) bool {
	return !errors.Is(target, ErrRejected) && errors.Is(s.err, target)
}

func (s *sent) As(target any) bool {
	if _, ok := target.(**Rejection); ok {
		return false
	}
	return errors.As(s.err, target)
}
