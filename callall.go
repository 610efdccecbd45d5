package belfry

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"sync"
)

// A Result is what became of one input of [CallAll].
type Result[Req, Res any] struct {
	// Req is the input.
	Req Req
	// Res is the response to it, if Err is nil. Whoever gets it ends it, where that is necessary.
	Res Res
	// Err is why there is none. If it matches [ErrRejected] the input was not sent: this hands it back.
	Err error
}

// CallAll sends every input to svc, at most maxInFlight at a time, and yields their results in the order of the inputs.
// [CallAllAsCompleted] does the same in the order in which they come.
//
// An input counts as in flight from when it is taken until the loop gets its result, so no more than maxInFlight of either are
// ever kept, however slow the loop or the first of the calls is. For each, CallAll takes it from inputs, then acquires,
// then calls; while inputs has nothing to give, nothing is held in svc. maxInFlight is at least 1, or CallAll panics.
//
// A call that fails has a result like any other, and things go on. When Acquire fails, no further input is taken: the one in
// hand is given back, in its place, with the error, and nothing comes after it but, in the order of completion, what was
// still in flight. The error is also a context's: after the end of ctx, what was sent is answered, what was taken and
// not sent is given back, and the rest is left in inputs: whether all were taken, ctx.Err() says after the loop.
//
// The loop may be left at any time. That ends the contexts of the calls in flight, discards by sem what they still answer,
// and drops an input that was taken and not sent; to lose none, cancel ctx and finish the loop instead. When the loop
// has ended, in whatever way, nothing of it is left running, and nothing reserved. So it waits for the calls, which return
// when they notice, and for inputs: inputs runs in a goroutine of its own, and cannot be woken while it waits for something
// to give, so it should wait for the end of ctx as well.
//
// A panic in inputs or svc ends the loop, and is a panic there, with an error that holds a [PanicError]; a
// [runtime.Goexit] ends the goroutine of the loop. Each call has a context of its own, which lives as long as its response; it
// costs a goroutine and about ten allocations. sem is the protocol's, at most one, as for layers; where responses are
// streamed it must be given, for without its Until a response's context ends when Call returns. The sequence may be ranged
// over again if inputs may be.
func CallAll[Req, Res any](ctx context.Context, svc Service[Req, Res], inputs iter.Seq[Req], maxInFlight int, sem ...Semantics[Req, Res]) iter.Seq[Result[Req, Res]] {
	return callAll(ctx, svc, inputs, maxInFlight, true, SemanticsOf(sem))
}

// CallAllAsCompleted is [CallAll] in another order: a result is yielded as soon as there is one. A refusal of Acquire counts
// as one.
func CallAllAsCompleted[Req, Res any](ctx context.Context, svc Service[Req, Res], inputs iter.Seq[Req], maxInFlight int, sem ...Semantics[Req, Res]) iter.Seq[Result[Req, Res]] {
	return callAll(ctx, svc, inputs, maxInFlight, false, SemanticsOf(sem))
}

func callAll[Req, Res any](ctx context.Context, svc Service[Req, Res], inputs iter.Seq[Req], n int, ordered bool, sem Semantics[Req, Res]) iter.Seq[Result[Req, Res]] {
	if n < 1 {
		panic(fmt.Errorf("belfry: max in flight must be at least 1, got %d", n))
	}
	return func(yield func(Result[Req, Res]) bool) {
		b := &batch[Req, Res]{ctx: ctx, svc: svc, sem: sem, ordered: ordered}
		b.places, b.out = make(chan struct{}, n), make(chan *batchCall[Req, Res], n)
		b.going, b.stop = context.WithCancel(ctx)
		go b.feed(inputs)
		b.drain(yield)
	}
}

// A batch is one loop over CallAll. Its feeder takes a place, an input, a permit, in this order, and starts the call in a
// goroutine. Each input that was taken goes through out once: in order when it was taken, else when its call has
// ended. The loop frees a place when it gets an input out. So there is always room in out, and the feeder waits
// for nothing but a place, inputs and Acquire. It closes out, as the last of all goroutines.
type batch[Req, Res any] struct {
	ctx     context.Context // of calls
	going   context.Context // of the feeder; ends with the loop
	stop    context.CancelFunc
	svc     Service[Req, Res]
	sem     Semantics[Req, Res]
	ordered bool
	places  chan struct{}
	out     chan *batchCall[Req, Res]
	calls   sync.WaitGroup
	fault   fault // of the feeder; settled when out is closed
}

// A batchCall is an input on its way; all but forget is settled when done is closed.
type batchCall[Req, Res any] struct {
	Result[Req, Res]
	fault  fault
	done   chan struct{}
	forget func() bool // makes the call independent of the loop's end
}

// A fault is how a function has ended that has not returned; none of them is the zero fault.
type fault struct {
	panicked *PanicError
	exited   bool
}

// catch is deferred around a function, and told whether that has returned.
func (f *fault) catch(returned *bool) {
	if v := recover(); v != nil {
		f.panicked = &PanicError{Value: v, Stack: debug.Stack()}
	} else if !*returned {
		f.exited = true
	}
}

// raise does the same again, in another goroutine.
func (f *fault) raise() {
	switch {
	case f.panicked != nil:
		panic(fmt.Errorf("%w\n\n%s", f.panicked, f.panicked.Stack))
	case f.exited:
		runtime.Goexit()
	}
}

// feed takes inputs and starts calls, until inputs or the loop ends or Acquire fails.
func (b *batch[Req, Res]) feed(inputs iter.Seq[Req]) {
	defer func() {
		b.calls.Wait()
		close(b.out)
	}()
	returned := false
	defer b.fault.catch(&returned)
	if b.place() {
		for req := range inputs {
			if !b.send(req) || !b.place() {
				break
			}
		}
	}
	returned = true
}

// place waits for a place.
func (b *batch[Req, Res]) place() bool {
	if b.going.Err() != nil {
		return false
	}
	select {
	case b.places <- struct{}{}:
		return true
	case <-b.going.Done():
		return false
	}
}

// send acquires, and starts the call of req.
func (b *batch[Req, Res]) send(req Req) bool {
	c := &batchCall[Req, Res]{Result: Result[Req, Res]{Req: req}, done: make(chan struct{})}
	permit, err := acquireAlive(b.going, b.going, b.svc)
	if err == nil && b.going.Err() != nil { // nobody is there to read the answer
		b.svc.Release(permit)
		err = &Rejection{Layer: "call all", Reason: "context done before the call", Err: b.going.Err()}
	}
	if err != nil {
		c.Err = err
		close(c.done)
		b.out <- c
		return false
	}
	ctx, cancel := context.WithCancel(b.ctx)
	c.forget = context.AfterFunc(b.going, cancel)
	if b.ordered {
		b.out <- c
	}
	b.calls.Go(func() { b.call(ctx, cancel, c, permit) })
	return true
}

// call calls, and settles c.
func (b *batch[Req, Res]) call(ctx context.Context, cancel context.CancelFunc, c *batchCall[Req, Res], permit Permit) {
	returned := false
	defer func() {
		if !returned {
			cancel()
		}
		close(c.done)
		if !b.ordered {
			b.out <- c
		}
	}()
	defer c.fault.catch(&returned)
	c.Res, c.Err = b.svc.Call(ctx, permit, c.Req)
	c.Res = b.sem.Finish(c.Res, c.Err, cancel)
	returned = true
}

// drain yields what comes out, until it meets a fault.
func (b *batch[Req, Res]) drain(yield func(Result[Req, Res]) bool) {
	var met fault
	defer func() {
		b.finish(&met)
		met.raise()
	}()
	for c := range b.out {
		<-c.done
		<-b.places
		if c.forget != nil {
			c.forget()
		}
		if met = c.fault; met != (fault{}) || !yield(c.Result) {
			return
		}
	}
}

// finish ends what is in flight, waits for it, and discards what it answers. It notes in met the first fault there is.
func (b *batch[Req, Res]) finish(met *fault) {
	b.stop()
	for c := range b.out {
		<-c.done
		if *met == (fault{}) {
			*met = c.fault
		}
		if c.fault == (fault{}) {
			b.sem.Drop(c.Res, c.Err)
		}
	}
	if *met == (fault{}) {
		*met = b.fault
	}
}
