package belfry

import (
	"context"
	"errors"
	"time"
)

// Semantics tells layers what a protocol means: the six things about requests and responses that no generic code can
// know. A stack is given them once, and so is a balancer; then limits, retries, breakers and balancing
// agree on what failed and on when a call is over. The zero value fits plain calls. The functions have to be safe for
// concurrent use, and should not block: calls wait for them.
type Semantics[Req, Res any] struct {
	// Classify says how a call ended. Nil means: no error is a success; an error that matches [ErrRejected], or
	// that comes of the caller's cancelling, is ignored; every other error is a failure that may be tried again.
	Classify func(res Res, err error) Outcome

	// Copy returns req for another attempt, and false if it cannot be sent twice. Nil means assignment.
	Copy func(req Req) (Req, bool)

	// Idempotent reports whether req may be carried out twice, as it may be when it is sent a second time before the
	// first has failed. Nil means that every request may. (After a failure, Classify says whether another attempt does no harm.)
	Idempotent func(req Req) bool

	// Until arranges that done is called once when a streamed response has ended, and returns the response to
	// pass on. It is asked only about calls without an error. done is not to be called twice: what it frees may be
	// somebody else's by then. Nil means that a call is over when Call returns.
	Until func(res Res, done func()) Res

	// Cost says how much work req is, in units of an ordinary request: its bytes or tokens, divided by what is usual. Less than 1 counts as 1. It
	// is asked when the request is there, in Call, so what it says counts for whoever chooses after that. Nil means that all are equal.
	Cost func(req Req) int

	// Discard ends a response that nobody will read; done of Until has been called when it returns. Nil means that there
	// is nothing to do.
	Discard func(res Res)
}

// Kind says what a call's end says about the service.
type Kind uint8

const (
	// Success is the zero Kind: the service did what it should.
	Success Kind = iota
	// Failure means that the service did not.
	Failure
	// Ignored means that the end says nothing about the service: the caller left, or the request was never sent.
	Ignored
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Success:
		return "success"
	case Failure:
		return "failure"
	case Ignored:
		return "ignored"
	}
	return "unknown"
}

// An Outcome is how a call ended. The zero Outcome is a plain success.
type Outcome struct {
	// Kind is what the end says about the service.
	Kind Kind
	// Retry says that another attempt may succeed and does no harm.
	Retry bool
	// RetryAfter is how long the service asks to wait before that; 0 means that it did not say.
	RetryAfter time.Duration
}

// Judge returns the Outcome by Classify, or by its default.
func (s *Semantics[Req, Res]) Judge(res Res, err error) Outcome {
	if s.Classify != nil {
		return s.Classify(res, err)
	}
	return ClassifyError(err)
}

// ClassifyError is what a nil Classify means; a Classify of one's own may fall back on it.
func ClassifyError(err error) Outcome {
	if err == nil {
		return Outcome{}
	}
	return classify(err)
}

func classify(err error) Outcome {
	switch {
	case errors.Is(err, ErrRejected):
		return Outcome{Kind: Ignored, RetryAfter: RetryAfter(err)}
	case errors.Is(err, context.Canceled):
		return Outcome{Kind: Ignored}
	default:
		return Outcome{Kind: Failure, Retry: true}
	}
}

// RetryAfter returns how long the refusal in err asks to wait, 0 if it does not say or there is none.
func RetryAfter(err error) time.Duration {
	if r, ok := errors.AsType[*Rejection](err); ok {
		return r.RetryAfter
	}
	return 0
}

// Replay returns req for another attempt by Copy, or by its default.
func (s *Semantics[Req, Res]) Replay(req Req) (Req, bool) {
	if s.Copy == nil {
		return req, true
	}
	return s.Copy(req)
}

// MayRepeat reports by Idempotent, or by its default, whether req may be carried out twice.
func (s *Semantics[Req, Res]) MayRepeat(req Req) bool {
	return s.Idempotent == nil || s.Idempotent(req)
}

// Work returns how much work req is by Cost, or by its default, and is at least 1.
func (s *Semantics[Req, Res]) Work(req Req) int {
	if s.Cost == nil {
		return 1
	}
	return max(s.Cost(req), 1)
}

// Streams reports whether a call may last longer than Call: only then is there a done function to make.
func (s *Semantics[Req, Res]) Streams() bool { return s.Until != nil }

// Finish arranges by Until that done is called when the call which returned res and err is over, and returns the
// response to pass on. With an error, or without Until, that is now. If Until panics, nobody will read the response: Finish
// ends it by Discard and calls done. So an Until that panics must neither have called done nor have kept it; to notice
// that would cost every streamed call an allocation.
func (s *Semantics[Req, Res]) Finish(res Res, err error, done func()) Res {
	if err != nil || s.Until == nil {
		done()
		return res
	}
	passed := false
	defer func() {
		if !passed {
			defer done()
			s.Drop(res, nil)
		}
	}()
	res = s.Until(res, done)
	passed = true
	return res
}

// Drop ends by Discard a response that nobody will read. A call that returned an error has none.
func (s *Semantics[Req, Res]) Drop(res Res, err error) {
	if err == nil && s.Discard != nil {
		s.Discard(res)
	}
}

// SemanticsOf returns the first of sem, the zero Semantics if there is none. Constructors take Semantics as
// a last, optional argument, so that plain calls need not name their types:
//
//	func New[Req, Res any](inner belfry.Service[Req, Res], sem ...belfry.Semantics[Req, Res]) *Service[Req, Res]
func SemanticsOf[Req, Res any](sem []Semantics[Req, Res]) Semantics[Req, Res] {
	if len(sem) == 0 {
		return Semantics[Req, Res]{}
	}
	return sem[0]
}
