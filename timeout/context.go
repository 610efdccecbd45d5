package timeout

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A deadline is the caller's context that also ends at a time. Many calls never look at more than its values, so it
// is one small value until somebody asks for Done, or asks for Err when the time has passed; only then there is a
// context of the standard library behind it, with a timer. From then on it answers for that one in everything, Value
// included: package context finds its own there, also through contexts that wrap this one, and needs no
// goroutine for each context derived from it.
type deadline struct {
	context.Context // the caller's
	at              time.Time
	fused           bool         // it, or one above it, may be lifted
	phase           atomic.Int32 // of state, so that most calls need no lock

	mu sync.Mutex // never held while a method of a context is called
	state
}

// The phases of a state. It goes from each to a later one only.
const (
	untouched int32 = iota // as it was made
	ended                  // over is to be set, and nothing else
	touched                // it says all itself, under mu
)

// A state changes once in each of its parts, and is guarded by the deadline's mu.
type state struct {
	std    context.Context
	cancel func() // ends std, and is called once; nil before there is one, and after
	fuse   *fuse  // of std, if that may be lifted
	lifted bool   // the time no longer counts
	over   bool
}

func (d *deadline) look() state {
	switch d.phase.Load() {
	case untouched:
		return state{}
	case ended:
		return state{over: true}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// touch is called before the state is changed. mu is held.
func (d *deadline) touch() {
	if d.phase.Swap(touched) == ended {
		d.over = true
	}
}

// Deadline returns when the context ends.
func (d *deadline) Deadline() (time.Time, bool) {
	if d.look().lifted {
		return d.Context.Deadline()
	}
	return d.at, true
}

// Done makes the standard context if there is none.
func (d *deadline) Done() <-chan struct{} { return d.standard().std.Done() }

// Err goes by the time until there is a standard context. Once the deadline has passed it makes one, which has the cause.
func (d *deadline) Err() error {
	s := d.look()
	if s.std == nil {
		if !s.over && time.Until(d.at) > 0 {
			return d.Context.Err()
		}
		s = d.standard()
	}
	if s.fuse != nil && s.std.Err() == nil {
		s.fuse.follow() // which may be on its way, in another goroutine
	}
	return s.std.Err()
}

// Value answers for the standard context if there is one, else for the caller's.
func (d *deadline) Value(key any) any {
	if _, ok := key.(liftKey); ok && d.fused {
		return true
	}
	if s := d.look(); s.std != nil {
		return s.std.Value(key)
	}
	return d.Context.Value(key)
}

// lift lets the context live on past the deadline, unless that has ended it already.
func (d *deadline) lift() {
	d.mu.Lock()
	d.touch()
	d.lifted = true
	fuse := d.fuse
	d.mu.Unlock()
	if fuse != nil {
		fuse.timer.Stop()
	}
}

// end ends the context, and its timer.
func (d *deadline) end() {
	if d.phase.CompareAndSwap(untouched, ended) {
		return // there is nothing else to end
	}
	d.mu.Lock()
	d.touch()
	d.over = true
	cancel := d.cancel
	d.cancel = nil
	d.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// standard returns a state with a standard context. That is made outside the lock: of two made at once, the second is
// dropped, and what happened meanwhile is made up for.
func (d *deadline) standard() state {
	before := d.look()
	if before.std != nil {
		return before
	}
	std, cancel, fuse := d.make(before.lifted)
	d.mu.Lock()
	d.touch()
	dropped := d.std != nil
	if !dropped {
		d.std, d.fuse = std, fuse
	}
	useless := dropped || d.over
	if !useless {
		d.cancel = cancel
	}
	after := d.state
	d.mu.Unlock()
	if useless {
		cancel()
	}
	if after.lifted && fuse != nil {
		fuse.timer.Stop()
	}
	return after
}

func (d *deadline) make(lifted bool) (std context.Context, cancel func(), f *fuse) {
	switch {
	case lifted:
		std, cancel = context.WithCancel(d.Context)
	case d.fused:
		return newFuse(d.Context, d.at)
	default:
		std, cancel = context.WithDeadlineCause(d.Context, d.at, Err)
	}
	return std, cancel, nil
}

// mayLift reports whether the deadline of ctx may be lifted while a response is read.
func mayLift(ctx context.Context) bool { return ctx.Value(liftKey{}) != nil }

type liftKey struct{}

// A fuse ends a standard context at a time, or with the caller's context, and can be taken out. The timer of the
// standard library cannot; and its other contexts only end as Canceled, which would look like a caller who left. What
// is free to end otherwise is a parent that is not the library's own. So the fuse is the parent, and the AfterFunc that
// the library asks it for spares the goroutine.
type fuse struct {
	context.Context // the caller's
	timer           *time.Timer
	following       sync.WaitGroup // holds the goroutine that the caller's context starts when it ends

	mu  sync.Mutex
	err error  // what ended it; Err for its deadline
	end func() // ends the child with what Err and Value say
}

func newFuse(ctx context.Context, at time.Time) (std context.Context, cancel func(), f *fuse) {
	f = &fuse{Context: ctx}
	std, end := context.WithCancel(f)
	f.follow()
	left := time.Until(at)
	if left <= 0 {
		f.blow(Err)
	}
	f.timer = time.AfterFunc(left, func() { f.blow(Err) })
	f.following.Add(1)
	unfollow := context.AfterFunc(ctx, func() {
		defer f.following.Done()
		f.follow()
	})
	return std, func() {
		f.timer.Stop()
		if !unfollow() {
			f.following.Wait() // the caller's context must not be used when Call has returned
		}
		end()
	}, f
}

// follow ends the child if the caller's context has ended.
func (f *fuse) follow() {
	if err := f.Context.Err(); err != nil {
		f.blow(err)
	}
}

func (f *fuse) blow(err error) {
	f.mu.Lock()
	first := f.err == nil
	if first {
		f.err = err
	}
	f.mu.Unlock()
	if first {
		f.end()
	}
}

func (f *fuse) ended() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Done only says that there is something to wait for. Whoever derives from f uses AfterFunc instead.
func (f *fuse) Done() <-chan struct{} { return never }

// AfterFunc is asked once, for the child.
func (f *fuse) AfterFunc(end func()) (stop func() bool) {
	f.end = end
	return func() bool { return true }
}

// Err returns what the child ends with.
func (f *fuse) Err() error {
	err := f.ended()
	if errors.Is(err, Err) {
		return context.DeadlineExceeded
	}
	return err
}

// Value answers for the caller's context, except that after the deadline package context finds the cause in blown.
func (f *fuse) Value(key any) any {
	if errors.Is(f.ended(), Err) {
		if v := blown.Value(key); v != nil {
			return v
		}
	}
	return f.Context.Value(key)
}

var (
	never = make(chan struct{})
	blown = func() context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(Err)
		return ctx
	}()
)
