package balance

import (
	"context"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/queue"
)

// A grant is what a waiter is handed, by a pointer: every waiter has room for one.
type grant struct {
	permit belfry.Permit
	err    error
}

// A famine is a time without usable endpoints, in which MaxWait bounds the wait. Who was in line when it began, a front part of the line, is failed
// all at once by its timer. Who joins the line later has a timer of its own: so most waiters wait for two channels, each of which costs them
// 112 bytes.
type famine struct {
	n     int         // it is the n-th; the first is at the beginning
	line  int         // how many of those are in line who were when it began; 0 when it is over
	timer *time.Timer // theirs
}

// wait joins the line, sees to it that every endpoint is driven, and waits to be handed a permit.
func (b *Balancer[Req, Res]) wait(ctx context.Context) (belfry.Permit, error) {
	done := ctx.Done()
	w, famine, starving, err := b.join()
	if err != nil {
		return belfry.Permit{}, err
	}
	var expired <-chan time.Time
	if starving { // there is nothing to wait for but a discovery
		expiry := time.NewTimer(b.cfg.MaxWait)
		defer expiry.Stop()
		expired = expiry.C
	}
	for {
		select {
		case <-w.Handed():
			g := w.Value()
			return g.permit, g.err
		case <-done:
			return b.leave(ctx, w, famine)
		case <-expired:
			if err := b.expire(w, famine); err != nil {
				return belfry.Permit{}, err
			}
			expired = nil
		}
	}
}

// join adds a waiter, unless there is nothing to wait for. It returns which famine was the latest, and whether it goes on.
func (b *Balancer[Req, Res]) join() (w *queue.Waiter[*grant], famine int, starving bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.hopeless(); err != nil {
		return nil, 0, false, err
	}
	w = b.waiters.Join(nil)
	b.waiting.Store(int32(b.waiters.Len()))
	b.driveAll()
	return w, b.famine.n, b.usable == 0, nil
}

// leave takes w, which joined the line when famine was the latest, out of it because its context has ended. If it was handed something before, that
// is what it gets.
func (b *Balancer[Req, Res]) leave(ctx context.Context, w *queue.Waiter[*grant], famine int) (belfry.Permit, error) {
	cause := ctx.Err()
	b.mu.Lock()
	left := b.leaveLine(w)
	if left && famine < b.famine.n && b.famine.line > 0 {
		b.famine.line--
	}
	b.mu.Unlock()
	if !left {
		g := w.Value()
		return g.permit, g.err
	}
	return belfry.Permit{}, b.refusal(cause, 0)
}

// expire fails w, which joined the line in famine, MaxWait ago, if that goes on. If not, the next one bounds its wait.
func (b *Balancer[Req, Res]) expire(w *queue.Waiter[*grant], famine int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.usable > 0 || b.famine.n != famine || !b.leaveLine(w) { // if it is not in the line any more, it was handed something
		return nil
	}
	return b.noEndpoints(belfry.ErrNotReady, notInTime)
}

const notInTime = "no endpoint discovered in time"

// starve begins a famine for those in line. mu is held.
func (b *Balancer[Req, Res]) starve() {
	b.famine.n++
	if b.famine.line = b.waiters.Len(); b.famine.line > 0 {
		famine := b.famine.n
		b.famine.timer = time.AfterFunc(b.cfg.MaxWait, func() { b.starved(famine) })
	}
}

// feed ends the famine. mu is held.
func (b *Balancer[Req, Res]) feed() {
	if b.famine.line = 0; b.famine.timer != nil {
		b.famine.timer.Stop()
		b.famine.timer = nil
	}
}

// starved fails those who were in line when famine began, MaxWait ago, if it goes on.
func (b *Balancer[Req, Res]) starved(famine int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.famine.n != famine || b.famine.line == 0 {
		return
	}
	failed := &grant{err: b.noEndpoints(belfry.ErrNotReady, notInTime)}
	for range b.famine.line {
		b.waiters.HandOldest(failed)
	}
	b.waiting.Store(int32(b.waiters.Len()))
	b.feed()
}

// leaveLine takes w out of the line, unless it was handed something. mu is held.
func (b *Balancer[Req, Res]) leaveLine(w *queue.Waiter[*grant]) bool {
	left := b.waiters.Leave(w)
	b.waiting.Store(int32(b.waiters.Len()))
	return left
}

// handOver gives the first waiter a permit, and reports whether there was one. mu is held.
func (b *Balancer[Req, Res]) handOver(permit belfry.Permit) bool {
	handed := b.waiters.Len() > 0 && b.waiters.HandOldest(&grant{permit: permit})
	b.waiting.Store(int32(b.waiters.Len()))
	return handed
}

// failWaiters fails all that wait. mu is held.
func (b *Balancer[Req, Res]) failWaiters(err error) {
	failed := &grant{err: err}
	for b.waiters.HandOldest(failed) {
	}
	b.waiting.Store(0)
	b.feed()
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
	if err := b.hopeless(); err != nil {
		b.failWaiters(err)
	}
	switch {
	case before == 0 && b.usable > 0:
		b.feed()
	case before > 0 && b.usable == 0:
		b.starve()
	}
}
