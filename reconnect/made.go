package reconnect

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/belfry-go/belfry"
)

// A made is a service that was made, from then until its last call is over.
//
// holds counts those who use it, and who must not find it closed, plus retired once nobody shall begin to. Whoever finds it
// to be retired alone has ended the last use, and closes the service.
type made[Req, Res any] struct {
	svc     belfry.Service[Req, Res]
	attempt uint64
	lost    context.Context // ends when it is retired
	lose    context.CancelFunc
	over    func() // drop, made once: every streamed call needs it

	holds  atomic.Int64
	closed atomic.Bool
	proven atomic.Bool // a call of it has ended without an error
}

const retired = 1 << 62

func newMade[Req, Res any](svc belfry.Service[Req, Res], attempt uint64) *made[Req, Res] {
	m := &made[Req, Res]{svc: svc, attempt: attempt}
	m.lost, m.lose = context.WithCancel(context.Background())
	m.over = m.drop
	return m
}

// hold begins a use, unless it is retired.
func (m *made[Req, Res]) hold() bool {
	if m.holds.Add(1) < retired {
		return true
	}
	m.drop()
	return false
}

// drop ends a use. The caller need not wait for a service to close.
func (m *made[Req, Res]) drop() {
	if m.holds.Add(-1) == retired {
		go func() { _ = m.close() }()
	}
}

// retire ends the beginning of uses. It reports whether nobody uses it.
func (m *made[Req, Res]) retire() bool {
	idle := m.holds.Add(retired) == retired
	m.lose()
	return idle
}

func (m *made[Req, Res]) isRetired() bool { return m.holds.Load() >= retired }

// close closes the service, if it has a Close and nobody has called it yet.
func (m *made[Req, Res]) close() error {
	if m.closed.Swap(true) {
		return nil // a hold that came too late was dropped again
	}
	return shut(m.svc)
}

// shut closes svc if it can be. A panic is lost: it has no caller to go to.
func shut[Req, Res any](svc belfry.Service[Req, Res]) error {
	closer, ok := svc.(io.Closer)
	if !ok {
		return nil
	}
	defer func() { _ = recover() }()
	return closer.Close()
}

var errRemade = errors.New("reconnect: the service was lost while it was acquired")

// obtain acquires the service for a holder, who has dropped it when that fails. Who waits gets on when it is lost.
func (m *made[Req, Res]) obtain(ctx context.Context) (inner belfry.Permit, err error) {
	granted := false
	defer func() {
		if !granted {
			m.drop()
		}
	}()
	now := belfry.NoWait(ctx)
	inner, err = m.svc.Acquire(now)
	if err != nil && now != ctx && errors.Is(err, belfry.ErrNotReady) {
		inner, err = m.wait(ctx)
	}
	if err == nil && m.isRetired() {
		m.svc.Release(inner)
		err = errRemade
	}
	granted = err == nil
	return inner, err
}

// wait acquires under ctx, until the service is lost. That costs allocations, so obtain tries without it first.
func (m *made[Req, Res]) wait(ctx context.Context) (belfry.Permit, error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(m.lost, cancel)
	defer stop()
	inner, err := m.svc.Acquire(within)
	if err != nil && m.isRetired() && ctx.Err() == nil {
		err = errRemade
	}
	return inner, err
}

// A held is a permit of a service that granted one which remembers something.
type held[Req, Res any] struct {
	made  *made[Req, Res]
	inner belfry.Permit
}

// seal returns the permit for what the service has granted: m itself if that is nothing to remember.
func (m *made[Req, Res]) seal(inner belfry.Permit) belfry.Permit {
	if inner.Value() == nil {
		return belfry.NewPermit(m)
	}
	return belfry.NewPermit(&held[Req, Res]{m, inner})
}

// open is the reverse of seal.
func open[Req, Res any](permit belfry.Permit) (*made[Req, Res], belfry.Permit) {
	switch v := permit.Value().(type) {
	case *made[Req, Res]:
		return v, belfry.Permit{}
	case *held[Req, Res]:
		return v.made, v.inner
	}
	panic("reconnect: the permit is not one of a Service")
}
