package hedge

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
)

// A race is one request on its way, with all its attempts. The first runs in the caller's goroutine, each extra one in that of
// the timer which has started it. Whoever ends offers its result; the best is kept, and one that decides cancels
// the others. The race is over when it is decided, or nothing is running that could decide it.
type race[Req, Res any] struct {
	s     *Service[Req, Res]
	delay time.Duration
	set   attempt.Set
	first lane // around the caller's context

	// mu guards what follows. The one call under it is of the time package.
	mu      sync.Mutex
	req     Req
	decided bool
	field   *field[Res] // nil while there is only the first attempt
}

// A field is what there is to know of a race with more than one attempt.
type field[Res any] struct {
	best    result[Res]
	running int           // in goroutines of their own
	wake    chan struct{} // holds a token when the caller may look again
	extras  []*lane
	next    *time.Timer // of the extra attempt after the latest
}

// A result is how an attempt has ended.
type result[Res any] struct {
	lane  *lane
	rank  rank
	extra bool
	res   Res
	err   error
	now   time.Duration // when
	panic any
}

// A rank says how good a result is. From success on it decides the race.
type rank uint8

const (
	nothing  rank = iota // was sent
	rejected             // by what is inside, before it was sent
	failed               // with an error
	refused              // with a response that is a failure
	ignored              // with a response that says nothing about the service
	success
	broken // by a panic
	gone   // by Goexit, or not yet ended
)

func rankOf(kind belfry.Kind, err error) rank {
	switch {
	case kind == belfry.Success:
		return success
	case err != nil && unsent(err):
		return rejected
	case err != nil:
		return failed
	case kind == belfry.Ignored:
		return ignored
	default:
		return refused
	}
}

func unsent(err error) bool { return errors.Is(err, belfry.ErrRejected) }

// run makes the first attempt, with a timer for the next, and returns the answer.
func (r *race[Req, Res]) run(permit belfry.Permit, begin time.Duration) (Res, error) {
	if r.s.cfg.Detach {
		return r.runDetached(permit, begin)
	}
	timer := time.AfterFunc(r.delay, r.hedge)
	res, kind, now, err := r.inline(timer, permit, begin)
	if timer.Stop() { // there is no other attempt, and there will be none
		return r.end(&r.first, res, kind, now, err)
	}
	r.offer(result[Res]{lane: &r.first, rank: rankOf(kind, err), res: res, err: err, now: now})
	r.wait()
	return r.finish()
}

// inline makes the first attempt. If that panics, or ends the goroutine, so does the caller, and nothing is left of the race.
func (r *race[Req, Res]) inline(timer *time.Timer, permit belfry.Permit, begin time.Duration) (res Res, kind belfry.Kind, now time.Duration, err error) {
	returned := false
	defer func() {
		if !returned {
			timer.Stop()
			r.abort()
		}
	}()
	res, kind, now, err = r.s.send(&r.first, permit, r.req, begin)
	returned = true
	return res, kind, now, err
}

func (r *race[Req, Res]) runDetached(permit belfry.Permit, begin time.Duration) (Res, error) {
	r.others().running = 1
	req := r.req
	timer := time.AfterFunc(r.delay, r.hedge)
	defer timer.Stop()
	go r.apart(&r.first, func() result[Res] { return r.send(&r.first, &r.first, permit, req, begin) })
	r.wait()
	return r.finish()
}

// others returns the field, which it makes if need be. mu is held, or nobody else knows of the race.
func (r *race[Req, Res]) others() *field[Res] {
	if r.field == nil {
		r.field = &field[Res]{wake: make(chan struct{}, 1)}
	}
	return r.field
}

// send makes an attempt on permit.
func (r *race[Req, Res]) send(ctx context.Context, l *lane, permit belfry.Permit, req Req, begin time.Duration) result[Res] {
	res, kind, now, err := r.s.send(ctx, permit, req, begin)
	return result[Res]{lane: l, rank: rankOf(kind, err), res: res, err: err, now: now}
}

// hedge is what the timer runs, in a goroutine.
func (r *race[Req, Res]) hedge() {
	l, req, n := r.enter()
	if l != nil {
		r.apart(l, func() result[Res] { return r.extra(l, req, n) })
	}
}

// enter joins the race as extra attempt n, and sees to the next. It returns no lane if it comes too late.
func (r *race[Req, Res]) enter() (l *lane, req Req, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.decided {
		return nil, req, 0
	}
	f := r.others()
	f.running++
	l = &lane{Context: r.first.Context, tried: &r.set}
	f.extras = append(f.extras, l)
	n = len(f.extras)
	if n < r.s.cfg.MaxHedges {
		f.next = time.AfterFunc(r.delay, r.hedge)
	}
	return l, r.req, n
}

// apart makes an attempt in a goroutine of its own, and offers how it has ended, well or badly.
func (r *race[Req, Res]) apart(l *lane, f func() result[Res]) {
	out := result[Res]{lane: l, rank: gone}
	defer r.leave()
	defer func() {
		if v := recover(); v != nil {
			out.rank, out.panic = broken, v
		}
		r.offer(out)
	}()
	out = f()
}

// leave runs when the result was offered. A panic on the way there is of a Discard, of a response that has lost.
func (r *race[Req, Res]) leave() {
	if v := recover(); v != nil {
		r.s.panicked(v)
	}
	r.mu.Lock()
	r.field.running--
	r.mu.Unlock()
	r.field.wakeUp()
}

func (f *field[Res]) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// extra makes extra attempt n, if it may be made.
func (r *race[Req, Res]) extra(l *lane, req Req, n int) result[Res] {
	ctx, unmade := attempt.Hedge(l), result[Res]{lane: l}
	if attempt.IsHedge(r.first.Context) {
		return unmade
	}
	again, ok := r.s.repeat(req)
	if !ok {
		r.s.counts[notAllowed].Add(1)
		return unmade
	}
	permit, ok := r.reserve(ctx, n)
	if !ok {
		return unmade
	}
	out := r.send(ctx, l, permit, again, r.s.clock())
	out.extra = true
	return out
}

// reserve gets room for extra attempt n and pays for it, or leaves nothing reserved.
func (r *race[Req, Res]) reserve(ctx context.Context, n int) (_ belfry.Permit, ok bool) {
	if funds := r.s.cfg.Budget.Stats(); funds.Balance < 1 && !funds.Unlimited {
		r.s.counts[outOfBudget].Add(1)
		return belfry.Permit{}, false
	}
	permit, err := belfry.AcquireLate(ctx, "hedge", r.s.inner)
	if err != nil {
		r.s.counts[notReady].Add(1)
		return belfry.Permit{}, false
	}
	defer func() {
		if !ok {
			r.s.inner.Release(permit)
		}
	}()
	ok = r.commit(ctx, n)
	return permit, ok
}

// commit is the last moment before an extra attempt is sent.
func (r *race[Req, Res]) commit(ctx context.Context, n int) bool {
	if ctx.Err() != nil { // the race is over, or the caller has left
		return false
	}
	if !r.s.cfg.Budget.Withdraw() {
		r.s.counts[outOfBudget].Add(1)
		return false
	}
	r.s.counts[sent].Add(1)
	if r.s.cfg.OnHedge != nil {
		r.s.cfg.OnHedge(Event{Hedge: n, Delay: r.delay})
	}
	return true
}

// offer takes the result of an attempt, which may decide the race, and drops the worse of two.
func (r *race[Req, Res]) offer(out result[Res]) {
	worse, decides := out, false
	r.mu.Lock()
	f := r.others()
	if !r.decided && out.rank > f.best.rank {
		worse, f.best = f.best, out
		decides = out.rank >= success
		r.decided = decides
	}
	r.mu.Unlock()
	if decides {
		r.cancel(out.lane)
		f.wakeUp()
	}
	if worse.lane != nil {
		r.s.drop(worse)
	}
}

// cancel ends all attempts but that of the winner. The race is decided, so there are no others to come.
func (r *race[Req, Res]) cancel(winner *lane) {
	if winner != &r.first {
		r.first.end(beaten)
	}
	for _, l := range r.field.extras {
		if l != winner {
			l.end(beaten)
		}
	}
	if r.field.next != nil {
		r.field.next.Stop()
	}
}

// wait returns when the race is over, with WaitLosers when all attempts are.
func (r *race[Req, Res]) wait() {
	for {
		over, wake := r.over()
		if over {
			return
		}
		<-wake
	}
}

// over reports whether the race is, and if so sees to it that nothing begins any more.
func (r *race[Req, Res]) over() (bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.others()
	over := f.running == 0 || r.decided && !r.s.cfg.WaitLosers
	r.decided = r.decided || over
	return over, f.wake
}

// finish returns the best result of a race that is over.
func (r *race[Req, Res]) finish() (Res, error) {
	best := r.field.best
	r.field.best = result[Res]{}
	if r.field.next != nil {
		r.field.next.Stop()
	}
	if best.rank == broken {
		best.lane.finish()
		panic(best.panic)
	}
	if best.rank == gone {
		best.lane.finish()
		runtime.Goexit()
	}
	kind := belfry.Failure
	if best.rank == success {
		kind = belfry.Success
		if best.extra {
			r.s.counts[won].Add(1)
		}
	}
	return r.end(best.lane, best.res, kind, best.now, best.err)
}

// end returns the answer. Its response may keep the race for long, by its context, so the request is cleared.
func (r *race[Req, Res]) end(l *lane, res Res, kind belfry.Kind, now time.Duration, err error) (Res, error) {
	var none Req
	r.req = none
	if kind == belfry.Success {
		r.s.deposit(now)
	}
	if err != nil || !r.s.sem.Streams() {
		l.finish()
		return res, err
	}
	return r.s.sem.Finish(res, nil, l.finish), nil
}

// abort ends a race whose first attempt has panicked, or ended the goroutine.
func (r *race[Req, Res]) abort() {
	r.mu.Lock()
	r.decided = true
	f := r.others()
	best := f.best
	f.best = result[Res]{}
	r.mu.Unlock()
	r.cancel(nil)
	if r.s.cfg.WaitLosers {
		defer r.wait()
	}
	if best.lane != nil {
		r.s.drop(best)
	}
}

// repeat returns req for an extra attempt.
func (s *Service[Req, Res]) repeat(req Req) (_ Req, ok bool) {
	if !s.sem.MayRepeat(req) {
		return req, false
	}
	return s.sem.Replay(req)
}

// drop ends what has lost. Its context ends first, lest discarding waits for the network.
func (s *Service[Req, Res]) drop(worse result[Res]) {
	worse.lane.end(beaten)
	if worse.rank == broken {
		s.panicked(worse.panic)
	} else if worse.rank >= refused && worse.rank <= success {
		s.sem.Drop(worse.res, nil)
	}
}

// panicked takes note of a panic that is nobody's.
func (s *Service[Req, Res]) panicked(v any) {
	s.counts[panics].Add(1)
	if s.cfg.OnPanic != nil {
		s.cfg.OnPanic(v)
	}
}
