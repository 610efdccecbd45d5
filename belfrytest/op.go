package belfrytest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
)

// An op is what one caller does, in a goroutine of its own. Its fields may be read once it has returned.
type op struct {
	r       *trial
	done    chan struct{}
	req     int
	permit  belfry.Permit
	granted bool // by Acquire
	used    bool // the permit is
	called  bool // Call was begun
	res     int
	err     error // of whatever came last
	panic   any
	exited  bool // by Goexit
}

// start runs f, which may panic or exit.
func (r *trial) start(f func(o *op)) *op {
	o := &op{r: r, done: make(chan struct{})}
	r.mu.Lock()
	r.ops = append(r.ops, o)
	r.mu.Unlock()
	go func() {
		normal := false
		defer func() {
			if !normal {
				o.panic = recover()
				o.exited = o.panic == nil
			}
			close(o.done)
		}()
		f(o)
		normal = true
	}()
	return o
}

// acquire starts an Acquire.
func (r *trial) acquire(ctx context.Context) *op {
	return r.start(func(o *op) { o.acquire(ctx) })
}

// call starts a Call of req on the permit that another op was granted.
func (r *trial) call(ctx context.Context, from *op, req int) *op {
	return r.start(func(o *op) {
		o.permit = from.take()
		o.call(ctx, req)
	})
}

// do starts an Acquire and a Call of req.
func (r *trial) do(ctx context.Context, req int) *op {
	return r.start(func(o *op) {
		o.req = req
		if o.acquire(ctx) {
			o.call(ctx, req)
		}
	})
}

// release starts a Release of the permit that another op was granted.
func (r *trial) release(from *op) *op {
	return r.start(func(*op) { from.release() })
}

func (o *op) release() { o.r.svc.Release(o.take()) }

// take returns the permit for its one use.
func (o *op) take() belfry.Permit {
	o.used = true
	return o.permit
}

func (o *op) returned() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// acquire is Acquire, judged.
func (o *op) acquire(ctx context.Context) bool {
	if !isNoWait(ctx) {
		w := o.r.watched(ctx, "Acquire")
		defer w.end()
		ctx = w
	}
	o.permit, o.err = o.r.svc.Acquire(ctx)
	o.granted = o.err == nil
	if !o.granted {
		o.r.judgeRefusal(ctx, "Acquire", o.err)
	}
	return o.granted
}

// call is Call, judged.
func (o *op) call(ctx context.Context, req int) {
	w := o.r.watched(ctx, "Call")
	defer func() {
		w.end()
		o.r.judgeOver(req)
	}()
	ctx = w
	o.req, o.called = req, true
	o.res, o.err = o.r.svc.Call(ctx, o.take(), req)
	o.r.judgeCall(ctx, o)
}

// judgeRefusal looks at an error of something that was not sent.
func (r *trial) judgeRefusal(ctx context.Context, where string, err error) {
	if r.inner.gone() {
		return
	}
	planned := errors.Is(err, errAcquire) || errors.Is(err, errRefused)
	noWait := isNoWait(ctx)
	switch {
	case !errors.Is(err, belfry.ErrRejected) && !(where == "Acquire" && planned):
		r.failRule(7, "%s failed with an error that does not match ErrRejected, although nothing was sent: %v", where, err)
	case errors.Is(err, belfry.ErrClosed) && !r.inner.isClosed():
		r.failRule(6, "%s failed with ErrClosed, which is for ever, although the inner service is open: %v", where, err)
	case ctx.Err() == nil && !planned && !r.inner.isClosed() && !r.traits.has(Sheds|Refuses|TimesOut):
		r.failRule(3, "%s was refused under a context that would have let it wait: %v", where, err)
	case noWait && !planned && !errors.Is(err, belfry.ErrNotReady):
		r.failRule(3, "%s under NoWait failed with an error that does not match ErrNotReady: %v", where, err)
	}
	if planned {
		return
	}
	if rejection, ok := errors.AsType[*belfry.Rejection](err); !ok || rejection.Layer == "" {
		r.failRule(7, "%s failed without a *belfry.Rejection that names a layer: %v", where, err)
	}
}

// judgeCall looks at what Call returned.
func (r *trial) judgeCall(ctx context.Context, o *op) {
	if r.inner.gone() {
		return
	}
	tries := r.inner.tries(o.req)
	if len(tries) > 1 && !r.traits.has(Retries) {
		r.failRule(2, "request %d was sent %d times on one permit", o.req, len(tries))
	}
	switch {
	case o.err == nil && o.res != -o.req:
		r.failRule(1, "the answer to request %d was %d, want %d: it is another caller's", o.req, o.res, -o.req)
	case o.err == nil:
	case len(tries) == 0:
		r.judgeRefusal(ctx, "Call", o.err)
	case errors.Is(o.err, belfry.ErrRejected):
		r.failRule(7, "request %d was sent, but Call returned an error that matches ErrRejected: %v", o.req, o.err)
	case !r.keepsCause(o.err, tries):
		r.failRule(7, "Call of request %d lost the error of the attempt that was sent last (%v): %v", o.req, tries[len(tries)-1].err, o.err)
	}
}

func (r *trial) keepsCause(err error, tries []*try) bool {
	if r.traits.has(TimesOut) && errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	if !r.traits.has(Hedges) {
		tries = tries[len(tries)-1:]
	}
	for _, a := range tries {
		if sent := r.inner.errorOf(a); sent == nil || errors.Is(err, sent) {
			return true
		}
	}
	return false
}

// judgeOver looks for attempts that outlast their Call.
func (r *trial) judgeOver(req int) {
	if r.traits.has(Hedges) {
		return
	}
	if slices.ContainsFunc(r.inner.tries(req), r.inner.isRunning) {
		r.failRule(5, "Call of request %d returned while the inner Call was still running", req)
	}
}

// A watched context is given to one method, and notices who uses it later than that returned. At the same instant nothing is
// said, because a timer of package context may fire just then.
type watched struct {
	context.Context // a cancelCtx, so that contexts derived from it need no goroutine to watch it
	r               *trial
	name            string
	over            atomic.Int64 // when the method returned, 0 while it has not
	once            sync.Once
}

func (r *trial) watched(ctx context.Context, name string) *watched {
	return &watched{Context: ctx, r: r, name: name}
}

// ctx returns a context that carries name, and ends with the trial.
func (r *trial) ctx(name string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), markKey{}, name))
	r.mu.Lock()
	r.ends = append(r.ends, cancel)
	over := r.over
	r.mu.Unlock()
	if over {
		cancel()
	}
	return ctx, cancel
}

// live returns a context that only the end of the trial ends.
func (r *trial) live() context.Context {
	ctx, _ := r.ctx("live")
	return ctx
}

func isNoWait(ctx context.Context) bool { return errors.Is(ctx.Err(), belfry.ErrNotReady) }

// markKey finds the name of the context that a call was made under.
type markKey struct{}

func (w *watched) Deadline() (time.Time, bool) { w.use("Deadline"); return w.Context.Deadline() }
func (w *watched) Done() <-chan struct{}       { w.use("Done"); return w.Context.Done() }
func (w *watched) Err() error                  { w.use("Err"); return w.Context.Err() }
func (w *watched) Value(key any) any           { w.use("Value"); return w.Context.Value(key) }

func (w *watched) end() { w.over.Store(time.Now().UnixNano()) }

func (w *watched) use(method string) {
	if over := w.over.Load(); over != 0 && time.Now().UnixNano() > over {
		w.once.Do(func() {
			w.r.failRule(5, "the context of %s was used (%s) after the method that it was for had returned", w.name, method)
		})
	}
	w.r.inward("ctx." + method)
}

func errorsIs(err, target error) bool { return err != nil && errors.Is(err, target) }
