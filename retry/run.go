package retry

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
)

// judge says how an attempt ended.
func (s *Service[Req, Res]) judge(res Res, err error) belfry.Outcome {
	if err == nil && s.sem.Classify == nil { // as most attempts end
		return belfry.Outcome{}
	}
	return s.classify(res, err)
}

// classify asks the Semantics. If that panics, nothing is left of the attempt.
func (s *Service[Req, Res]) classify(res Res, err error) belfry.Outcome {
	judged := false
	defer func() {
		if !judged {
			s.sem.Drop(res, err)
		}
	}()
	out := s.sem.Judge(res, err)
	judged = true
	return out
}

// A run is one request on its way, from when there is something to decide. A response may keep the context of its
// attempt for long, which may be a part of the run, so the rest is cleared at the end.
type run[Req, Res any] struct {
	s      *Service[Req, Res]
	ctx    *attempt.Context // of all attempts
	own    attempt.Context  // is that, with a policy of the user's: so a call needs one allocation
	policy Policy[Req, Res]

	permit   belfry.Permit
	reserved bool // permit is ours to spend

	end  Attempt[Res] // how the attempt ended
	got  Res          // its response, whatever the policy makes of it
	held bool         // got is ours to end

	made   int    // attempts
	sent   bool   // one of them was sent
	unsent bool   // the last one was not
	last   *Error // of the attempts before this one, the last that tells
}

// do makes attempts, on the room that is reserved if one is due, until there is to be no other.
func (r *run[Req, Res]) do(ctx context.Context, req Req) (Res, error) {
	defer r.abandon()
	if r.policy == nil {
		r.policy = r.s.newPolicy()
	}
	for {
		if r.reserved {
			r.send(req)
		}
		next, wait, again := r.decide(ctx, req)
		if !again {
			return r.finish(ctx)
		}
		req = next
		r.moveOn()
		pause(ctx, wait)
		r.reserve()
	}
}

// send makes an attempt, on room that is reserved.
func (r *run[Req, Res]) send(req Req) {
	if r.made > 0 {
		r.s.retries.Add(1)
	}
	r.ctx.Begin()
	r.reserved = false
	res, err := r.s.inner.Call(r.ctx, r.permit, req)
	r.ended(res, r.s.judge(res, err), err)
}

// ended takes note of how an attempt that was made ended.
func (r *run[Req, Res]) ended(res Res, out belfry.Outcome, err error) {
	r.made++
	r.got, r.held = res, err == nil
	r.unsent = err != nil && errors.Is(err, belfry.ErrRejected)
	r.sent = r.sent || !r.unsent
	r.end = Attempt[Res]{N: r.made, Res: res, Err: err, Outcome: out, Final: r.ctx.Final() || asksToBeFinal(err), Now: time.Now()}
}

// decide asks the policy about the attempt that has just ended, and whether there can be another.
func (r *run[Req, Res]) decide(ctx context.Context, req Req) (next Req, wait time.Duration, again bool) {
	if !r.policy.Observe(r.ctx, &r.end) {
		return next, 0, false
	}
	if ctx.Err() != nil {
		r.end.reason = outOfTime
		return next, 0, false
	}
	return r.prepare(ctx, req)
}

// prepare copies req, lets the policy change the copy, and returns it with the pause before it is to be sent. It is apart
// from decide because the copy goes to the heap.
func (r *run[Req, Res]) prepare(ctx context.Context, req Req) (_ Req, wait time.Duration, again bool) {
	next, ok := req, true
	if !r.end.Unready { // else this is the copy already
		if next, ok = r.s.sem.Replay(req); !ok {
			next, ok = req, r.unsent
		}
	}
	if !ok {
		r.end.reason = notCopyable
		return next, 0, false
	}
	if wait, again = r.policy.Retry(r.ctx, &r.end, &next); !again {
		return next, 0, false
	}
	if r.end.Unready {
		wait = max(wait, belfry.RetryAfter(r.end.Err), time.Millisecond) // a policy cannot make us spin
	}
	if !outlasts(ctx, r.end.Now, wait) {
		r.end.reason = outOfTime
		return next, 0, false
	}
	return next, wait, true
}

// tells reports whether the attempt that has ended is the one to tell of: it was made, and sent if any was.
func (r *run[Req, Res]) tells() bool { return !r.end.Unready && !(r.unsent && r.sent) }

// moveOn leaves the attempt that has ended behind: its response is ended, what is to be told of it is kept.
func (r *run[Req, Res]) moveOn() {
	if r.tells() {
		r.last = &Error{Outcome: r.end.Outcome, Last: r.end.Err}
		if r.held {
			r.last.Discarded = r.got
		}
	}
	r.drop()
}

// drop ends the response of the attempt.
func (r *run[Req, Res]) drop() {
	if r.held {
		r.held = false
		r.s.sem.Drop(r.got, nil)
	}
}

// pause returns after wait, or when ctx ends.
func pause(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// reserve gets room for another attempt, under the context that knows what was tried. If it gets none, that is how this
// attempt ended.
func (r *run[Req, Res]) reserve() {
	permit, err := belfry.AcquireLate(r.ctx, "retry", r.s.inner)
	if err == nil {
		r.permit, r.reserved = belfry.Promptly(r.s.inner, permit), true
		return
	}
	var none Res
	r.end = Attempt[Res]{N: r.made + 1, Unready: true, Err: err, Now: time.Now(), reason: unready}
	r.end.Outcome = r.s.sem.Judge(none, err)
}

// finish returns the result of the last attempt, or an Error that tells of the one before if that one was not sent.
func (r *run[Req, Res]) finish(ctx context.Context) (Res, error) {
	if r.end.reason != decided {
		r.s.ends[r.end.reason].Add(1)
	}
	if r.end.Err == nil {
		r.held = false
		if r.end.reason == outOfBudget {
			attempt.Finalize(ctx)
		}
		return r.end.Res, nil
	}
	if r.held { // the policy has set an error in place of the response, which abandon ends
		var none Res
		r.end.Res = none
	}
	return r.end.Res, r.failure()
}

// failure returns the error to report for an attempt that ended with one.
func (r *run[Req, Res]) failure() error {
	e, broke := r.last, r.end.reason == outOfBudget
	switch {
	case !r.tells() && broke:
		e.Cause = errors.Join(ErrOutOfBudget, r.end.Err)
	case !r.tells():
		e.Cause = r.end.Err
	case broke:
		e = &Error{Outcome: r.end.Outcome, Last: r.end.Err, Cause: ErrOutOfBudget}
	case r.unsent:
		return belfry.Refuse("retry", r.end.Err)
	default:
		return belfry.Sent(r.end.Err)
	}
	e.Attempts = r.made
	if r.sent {
		e.Last, e.Cause = belfry.Sent(e.Last), belfry.Sent(e.Cause)
	}
	return e
}

// abandon runs at the end of every call, however that comes. It gives back what is still held, and forgets the rest.
func (r *run[Req, Res]) abandon() {
	if r.reserved {
		r.reserved = false
		r.s.inner.Release(r.permit)
	}
	r.drop()
	var none Res
	r.policy, r.permit, r.last = nil, belfry.Permit{}, nil
	r.got, r.end.Res, r.end.Err = none, none, nil
}
