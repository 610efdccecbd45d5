package belfry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A Lazy is a service that is still being made, or not yet. Making begins with the first Acquire, is done once, and goes on
// by itself, also when that caller and all others have left. Until it has ended, Acquire waits as long as its context
// allows, and those who waited go on in any order; then the Lazy is the service that was made, whose permits pass through.
//
// If there is none, because the function failed, panicked, exited or returned no service, every Acquire is refused with an
// error that matches [ErrClosed] and what the function failed with, for good. A panic is found as a [PanicError]. What has to be
// tried again, or made again later, is for package reconnect.
type Lazy[Req, Res any] struct {
	create func(ctx context.Context) (Service[Req, Res], error)
	life   context.Context // of what is made
	end    context.CancelFunc

	// made changes from nil to what came of making, by whichever of run and Close is first, and after that only by Close. It
	// is set before ended is closed, and before life ends.
	made    atomic.Pointer[made[Req, Res]]
	ended   chan struct{} // closed when nothing is being made any more, nor will be
	began   sync.Once
	closing sync.Once
	closed  error // of closing the service; settled by ended, then by closing
}

// made is what came of making: a service, or why Acquire is refused; after Close both.
type made[Req, Res any] struct {
	svc Service[Req, Res]
	err error
}

// NewLazy returns the service that create will make. The context of create has no values and no deadline; it ends with
// Close, or when create has failed, so what is made may keep it. NewLazy panics if create is nil. A Lazy adds no
// allocation to a call.
func NewLazy[Req, Res any](create func(ctx context.Context) (Service[Req, Res], error)) *Lazy[Req, Res] {
	if create == nil {
		panic(errors.New("belfry: the function that makes a Lazy must not be nil"))
	}
	l := &Lazy[Req, Res]{create: create, ended: make(chan struct{})}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

var (
	_ Service[int, int] = (*Lazy[int, int])(nil)
	_ io.Closer         = (*Lazy[int, int])(nil)
)

// Acquire waits until the service is made, and acquires it.
func (l *Lazy[Req, Res]) Acquire(ctx context.Context) (Permit, error) {
	m := l.made.Load()
	if m == nil {
		if m = l.await(ctx); m == nil {
			return Permit{}, &Rejection{Layer: layerLazy, Reason: "still being made", Err: ctx.Err()}
		}
	}
	if m.err != nil {
		return Permit{}, m.err
	}
	return m.svc.Acquire(ctx)
}

// Call calls the service that was made.
func (l *Lazy[Req, Res]) Call(ctx context.Context, permit Permit, req Req) (Res, error) {
	return l.made.Load().svc.Call(ctx, permit, req)
}

// Release gives the service that was made its permit back.
func (l *Lazy[Req, Res]) Release(permit Permit) { l.made.Load().svc.Release(permit) }

// Close ends the making, and refuses everybody, those who wait too, with [ErrClosed]; calls that have a permit go on. It waits
// for the function that makes, whose context has ended. Then it closes the service that was made, also one that came too
// late, if that has a method Close() error, and returns its error. Closing again waits for the first, and returns nil.
func (l *Lazy[Req, Res]) Close() (err error) {
	l.closing.Do(func() {
		closed := &made[Req, Res]{err: errLazyClosed}
		if !l.made.CompareAndSwap(nil, closed) {
			if was := l.made.Load(); was.err == nil {
				closed.svc = was.svc
				l.made.Store(closed)
			}
		}
		l.end()
		l.began.Do(func() { close(l.ended) }) // nobody has asked for it
		<-l.ended
		if err = l.closed; closed.svc != nil {
			err = closeService(closed.svc)
		}
	})
	return err
}

const layerLazy = "lazy"

var errLazyClosed error = &Rejection{Layer: layerLazy, Reason: "closed", Err: ErrClosed}

// await waits for what comes of making, as long as ctx allows. Making goes on without it.
func (l *Lazy[Req, Res]) await(ctx context.Context) *made[Req, Res] {
	l.began.Do(func() { go l.run() })
	select {
	case <-l.ended:
	case <-l.life.Done(): // with a function that does not notice
	case <-ctx.Done():
	}
	return l.made.Load()
}

// run makes the service. It ends well, whatever the function does.
func (l *Lazy[Req, Res]) run() {
	var svc Service[Req, Res]
	err := errExited
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		l.settle(svc, err)
	}()
	svc, err = l.create(l.life)
	if err == nil && svc == nil {
		err = ErrEmpty
	}
}

func (l *Lazy[Req, Res]) settle(svc Service[Req, Res], err error) {
	defer close(l.ended)
	m := &made[Req, Res]{svc: svc}
	if err != nil {
		m.err = &Rejection{Layer: layerLazy, Reason: "could not be made", Err: fmt.Errorf("%w: %w", ErrClosed, Sent(err))}
	}
	switch late := !l.made.CompareAndSwap(nil, m); {
	case err != nil:
		l.end()
	case late:
		l.closed = closeService(svc)
	}
}

// closeService closes svc if it can be, and turns a panic into an error.
func closeService(svc any) (err error) {
	c, ok := svc.(io.Closer)
	if !ok {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return c.Close()
}
