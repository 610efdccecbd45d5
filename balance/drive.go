package balance

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/eject"
	"github.com/belfry-go/belfry/internal/backoff"
	"github.com/belfry-go/belfry/load"
)

// A driver is the one goroutine that waits for an endpoint: until it is dialled, and then for a permit. It hands what it is
// granted to the first waiter, and goes on while there are more; when nobody waits it gives the permit back, which
// shows that the endpoint is ready, and ends. So it does not end with the caller on whose behalf it began: a
// goroutine started and stopped per waiter would spend its time on that when all endpoints are nearly full.

// start gives ep a driver, which pauses first if failed is not nil. mu is held, and ep is not removed.
func (b *Balancer[Req, Res]) start(ep *endpoint[Req, Res], failed error) {
	ep.driven = true
	b.drivers.Add(1)
	go b.drive(ep, failed)
}

// driveAll gives every endpoint a driver. mu is held.
func (b *Balancer[Req, Res]) driveAll() {
	if b.resting == 0 {
		return
	}
	b.resting = 0
	for _, ep := range b.ready.Load().eps {
		if !ep.driven {
			b.start(ep, nil)
		}
	}
}

func (b *Balancer[Req, Res]) drive(ep *endpoint[Req, Res], failed error) {
	defer b.drivers.Done()
	returned := false
	defer func() {
		if !returned {
			b.replace(ep)
		}
	}()
	for failed == nil || b.pause(ep, failed) {
		if failed = b.advance(ep); failed == nil {
			break
		}
	}
	returned = true
}

// replace goes on with another driver when ep's was ended by runtime.Goexit.
func (b *Balancer[Req, Res]) replace(ep *endpoint[Req, Res]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !ep.gone() {
		b.start(ep, errExited)
	}
}

// advance does what a driver is for, and returns why it has to pause, or nil when there is nothing left to do.
func (b *Balancer[Req, Res]) advance(ep *endpoint[Req, Res]) error {
	if ep.svc == nil {
		if err := b.connect(ep); err != nil || ep.svc == nil {
			return err
		}
	}
	for {
		inner, err := b.obtain(ep)
		switch {
		case errors.Is(err, belfry.ErrClosed):
			b.lose(ep, err)
			return nil
		case err != nil:
			return err
		}
		if err := b.granted(ep, inner); err != nil {
			return err
		}
		if b.rest(ep) {
			return nil
		}
	}
}

// connect dials ep. If ep was removed meanwhile, it has no service after that.
func (b *Balancer[Req, Res]) connect(ep *endpoint[Req, Res]) error {
	var svc belfry.Service[Req, Res]
	err := guard(func() (err error) {
		svc, err = b.dial(eject.With(ep.ctx, ep.guard), ep.key, ep.addr)
		return err
	})
	switch {
	case err != nil:
		return err
	case svc == nil:
		return errNoService
	}
	var measured load.Endpoint
	err = guard(func() error {
		measured = b.enrol(ep)
		return nil
	})
	if err == nil {
		if err = b.listen(ep, svc, measured); err != nil {
			b.part(ep, measured)
		}
	}
	if err != nil {
		_ = b.shutDown(ep, svc) // the event says how it went
		return err
	}
	b.mu.Lock()
	gone := ep.phase == removed
	if !gone {
		ep.svc, ep.load = svc, measured
		ep.Init(measured)
		ep.phase = up
	}
	replaced := b.admit(ep, false)
	b.mu.Unlock()
	if gone {
		b.part(ep, measured)
		_ = b.shutDown(ep, svc)
		return nil
	}
	b.emit(Event{Kind: EndpointDialled, Key: ep.key, Addr: ep.addr})
	b.retire(replaced)
	return nil
}

var errNoService = errors.New("balance: dial returned neither a service nor an error")

// obtain waits for a permit of ep, and holds ep for it. While it waits it only keeps ep's service from being closed: a
// goroutine that waits is no load.
func (b *Balancer[Req, Res]) obtain(ep *endpoint[Req, Res]) (inner belfry.Permit, err error) {
	granted := false
	defer func() {
		if granted {
			return
		}
		ep.Hint(false)
		if ep.Unwatch() {
			_ = b.bury(ep) // the event says how it went
		}
	}()
	if !ep.Watch() {
		return belfry.Permit{}, belfry.ErrNotReady
	}
	ctx, err := b.driving(ep)
	if err != nil {
		return belfry.Permit{}, err
	}
	err = guard(func() (err error) {
		inner, err = ep.svc.Acquire(ctx)
		return err
	})
	if granted = err == nil; granted {
		ep.Take()
	}
	return inner, err
}

// granted passes a permit on to the first waiter. If nobody waits, or ep was removed meanwhile, the permit goes back.
func (b *Balancer[Req, Res]) granted(ep *endpoint[Req, Res], inner belfry.Permit) error {
	permit := ep.seal(inner)
	var d draft
	if b.ring != nil {
		d = draft{now: b.now(), attempt: 1, by: ByWaiting}
		b.weigh(&d, ep, 1)
		d.answer(Granted)
	}
	b.mu.Lock()
	var replaced []*endpoint[Req, Res]
	handed, news := false, false
	if !ep.gone() {
		news = b.recovered(ep)
		replaced = b.admit(ep, true)
		if b.ring != nil && b.waiters.Len() > 0 {
			b.ring.add(&d, &ep.decided)
		}
		handed = b.handOver(permit)
	}
	b.mu.Unlock()
	b.retire(replaced)
	var err error
	if handed {
		ep.Hint(true)
	} else {
		err = guard(func() error {
			b.release(ep, inner)
			return nil
		})
	}
	if news { // last, so that whoever looks then sees no room that is only on its way
		b.emit(Event{Kind: EndpointReady, Key: ep.key, Addr: ep.addr})
	}
	return err
}

// rest ends the driving of ep, unless callers wait, and reports whether it did.
func (b *Balancer[Req, Res]) rest(ep *endpoint[Req, Res]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !ep.gone() && b.waiters.Len() > 0 {
		return false
	}
	ep.driven = false
	if ep.ready {
		b.resting++
	}
	return true
}

// The pauses after a refusal are short: it says that there is no room now. Other errors take Config's.
var refusalPauses = backoff.Exponential{Min: 5 * time.Millisecond, Max: 100 * time.Millisecond}

// pause waits before ep is tried again, and reports whether it is to be.
func (b *Balancer[Req, Res]) pause(ep *endpoint[Req, Res], failed error) bool {
	refused := errors.Is(failed, belfry.ErrNotReady)
	after := belfry.RetryAfter(failed)
	pauses := b.backoff
	if refused {
		pauses = refusalPauses
	}
	ep.broken.Store(!refused)
	n, ok := b.failed(ep, failed)
	if !ok {
		return false
	}
	if !refused {
		b.emit(Event{Kind: EndpointFailed, Key: ep.key, Addr: ep.addr, Err: failed})
	}
	timer := time.NewTimer(max(after, pauses.Delay(n, b.chance())))
	defer timer.Stop()
	var kick <-chan struct{}
	if refused && (after == 0 || ep.guard.Failed() != 0) {
		kick = ep.kick.wait()
		defer ep.kick.forget()
	}
	select {
	case <-timer.C:
	case <-kick:
	case <-ep.ctx.Done():
		return false
	}
	b.retry(ep)
	return true
}

// chance returns a random number in [0, 1).
func (b *Balancer[Req, Res]) chance() float64 {
	return float64(b.random.Uint64()>>11) / (1 << 53)
}

// failed notes why ep pauses, and returns how often it has before, in a row. It reports false if ep is gone.
func (b *Balancer[Req, Res]) failed(ep *endpoint[Req, Res], err error) (before int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ep.gone() {
		return 0, false
	}
	ep.phase = backingOff
	b.setError(ep, err)
	ep.failed++
	if !ep.ready && ep.failed == 1 {
		b.regroup()
	}
	return int(ep.failed - 1), true
}

// retry notes that the pause of ep is over. mu is not held.
func (b *Balancer[Req, Res]) retry(ep *endpoint[Req, Res]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ep.phase != backingOff:
	case ep.svc == nil:
		ep.phase = dialling
	default:
		ep.phase = up
	}
}

// trouble hands ep to its driver because Acquire failed on the request path.
func (b *Balancer[Req, Res]) trouble(ep *endpoint[Req, Res], err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ep.phase != up {
		return
	}
	b.setError(ep, err)
	ep.broken.Store(true)
	if !ep.driven {
		b.resting--
		b.start(ep, err)
	}
}

// recovered notes that ep has granted a permit, and reports whether that is news. mu is held.
func (b *Balancer[Req, Res]) recovered(ep *endpoint[Req, Res]) bool {
	news := ep.err != nil || !ep.seen
	if ep.err != nil && ep.seen {
		ep.load.Back(b.now())
	}
	ep.phase, ep.failed, ep.seen = up, 0, true
	b.setError(ep, nil)
	return news
}

// setError sets or clears the reason why ep is not ready. mu is held.
func (b *Balancer[Req, Res]) setError(ep *endpoint[Req, Res], err error) {
	before := ep.troubled.Swap(err != nil)
	ep.err = err
	if err == nil {
		ep.broken.Store(false)
	}
	switch {
	case err != nil && !before:
		b.troubled.Add(1)
	case err == nil && before:
		b.troubled.Add(-1)
	}
}

// guard calls f and turns a panic into an error. A Goexit goes through.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
