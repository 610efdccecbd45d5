package balance

import (
	"context"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/queue"
)

// wait joins the line, sees to it that every endpoint is driven, and waits to be handed a permit.
func (b *Balancer[Req, Res]) wait(ctx context.Context) (belfry.Permit, error) {
	done := ctx.Done()
	w, empty, err := b.join()
	if err != nil {
		return belfry.Permit{}, err
	}
	joined := time.Now()
	var expiry *time.Timer
	var expired <-chan time.Time
	for {
		select {
		case g := <-w.Handed():
			return g.permit, g.err
		case <-done:
			return b.leave(ctx, w)
		case <-empty: // there is nothing to wait for but a discovery
			if expiry == nil {
				expiry = time.NewTimer(b.cfg.MaxWait)
				defer expiry.Stop()
			}
			expiry.Reset(b.cfg.MaxWait)
			empty, expired = nil, expiry.C
		case <-expired:
			var left time.Duration
			if left, empty, err = b.expire(w, joined); err != nil {
				return belfry.Permit{}, err
			}
			expiry.Reset(left)
		}
	}
}

// join adds a waiter, unless there is nothing to wait for.
func (b *Balancer[Req, Res]) join() (w *queue.Waiter[grant], empty <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.hopeless(); err != nil {
		return nil, nil, err
	}
	w = b.waiters.Join()
	b.waiting.Store(int32(b.waiters.Len()))
	b.driveAll()
	return w, b.empty, nil
}

// leave takes w out of the line because its context has ended. If it was handed something before, that is what it
// gets.
func (b *Balancer[Req, Res]) leave(ctx context.Context, w *queue.Waiter[grant]) (belfry.Permit, error) {
	cause := ctx.Err()
	b.mu.Lock()
	left := b.leaveLine(w)
	b.mu.Unlock()
	if !left {
		g := <-w.Handed()
		return g.permit, g.err
	}
	return belfry.Permit{}, b.refusal(cause, 0)
}

// expire fails w if no endpoint is known and none was for MaxWait. Otherwise it says how long to go on, or that w may
// wait until there is no endpoint again.
func (b *Balancer[Req, Res]) expire(w *queue.Waiter[grant], joined time.Time) (left time.Duration, empty <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.usable > 0 {
		return b.cfg.MaxWait, b.empty, nil
	}
	since := joined
	if b.emptied.After(since) {
		since = b.emptied
	}
	left = b.cfg.MaxWait - time.Since(since)
	if left > 0 || !b.leaveLine(w) { // if it is not in the line any more, it was handed something
		return max(left, 1), nil, nil
	}
	return 0, nil, b.noEndpoints(belfry.ErrNotReady, "no endpoint discovered in time")
}

// leaveLine takes w out of the line, unless it was handed something. mu is held.
func (b *Balancer[Req, Res]) leaveLine(w *queue.Waiter[grant]) bool {
	left := b.waiters.Leave(w)
	b.waiting.Store(int32(b.waiters.Len()))
	return left
}

// handOver gives the first waiter a permit, and reports whether there was one. mu is held.
func (b *Balancer[Req, Res]) handOver(permit belfry.Permit) bool {
	handed := b.waiters.HandOldest(grant{permit: permit})
	b.waiting.Store(int32(b.waiters.Len()))
	return handed
}

// failWaiters fails all that wait. mu is held.
func (b *Balancer[Req, Res]) failWaiters(err error) {
	for b.waiters.HandOldest(grant{err: err}) {
	}
	b.waiting.Store(0)
}

// hopeless returns the error for callers that would wait for nothing. mu is held.
func (b *Balancer[Req, Res]) hopeless() error {
	switch {
	case b.closed:
		return errClosed
	case b.usable > 0 || len(b.members) == 0 && !b.ended:
		return nil
	case b.ended:
		return b.noEndpoints(belfry.ErrClosed, "no endpoint left")
	}
	return b.noEndpoints(belfry.ErrNotReady, "no endpoint left")
}

// counted adds to the number of usable endpoints and tells the waiters what that means for them. mu is held.
func (b *Balancer[Req, Res]) counted(more int) {
	before := b.usable
	b.usable += more
	switch {
	case before == 0 && b.usable > 0:
		b.empty = make(chan struct{})
	case before > 0 && b.usable == 0:
		b.emptied = time.Now()
		close(b.empty)
	}
	if err := b.hopeless(); err != nil {
		b.failWaiters(err)
	}
}
