package belfrytest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
)

// A TB is what this package's mocks need of a test. *testing.T has it, and so has a fake of a few lines, which shows
// how a test fails that ought to.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// NewBackend returns a service, and the Backend by which the test plays its part. It admits nobody until
// [Backend.Allow]. When the test ends, whatever was left undone fails it: a request that nobody expected or
// answered, a permit that was neither spent nor given back.
//
// It works inside and outside a synctest bubble. Inside it takes no real time, and lets virtual time pass only where
// a method says so.
func NewBackend[Req, Res any](t TB) (*Backend[Req, Res], belfry.Service[Req, Res]) {
	t.Helper()
	b := &Backend[Req, Res]{
		t:       t,
		bubble:  quiet(),
		arrived: make(chan struct{}, 1),
		granted: make(map[*grant]struct{}),
		running: make(map[*Request[Req, Res]]struct{}),
	}
	t.Cleanup(b.finish)
	return b, &backendService[Req, Res]{b}
}

// A Backend is the test's side of a mock service. Its methods may be called concurrently; those that wait belong to the
// test's goroutine, because they end the test when they have waited in vain.
type Backend[Req, Res any] struct {
	t       TB
	bubble  bool          // the test runs in one
	arrived chan struct{} // holds a token while queue may be worth a look

	// mu guards all below: free > 0 only while nobody waits. No method of t is called under it.
	mu       sync.Mutex
	free     int
	waiting  []*turn
	failures []error
	queue    []*Request[Req, Res] // arrived, not yet expected
	running  map[*Request[Req, Res]]struct{}
	granted  map[*grant]struct{} // held
	closed   bool
	ended    bool // the test is over, and t is not to be used any more
}

// A turn is an Acquire that waits; c is closed when it has been answered.
type turn struct {
	c      chan struct{}
	grant  *grant // what it waits for
	permit belfry.Permit
	err    error
}

// Allow lets n more calls through, whoever makes them: one grant is one Acquire, however many wait. A permit that
// comes back by Release is free again, one that was spent by Call is gone.
func (b *Backend[Req, Res]) Allow(n int) {
	b.t.Helper()
	if n < 0 {
		b.t.Fatalf("belfrytest: Allow(%d): the number of grants must not be negative", n)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.serve()
}

// FailAcquire makes one Acquire fail with err, as it is: the first that waits, else the next to come.
func (b *Backend[Req, Res]) FailAcquire(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) > 0 {
		b.first().answer(belfry.Permit{}, err)
		return
	}
	b.failures = append(b.failures, err)
}

// Close ends the service: every Acquire fails with [belfry.ErrClosed], those that wait too, and so does a Call on a
// permit granted before. Requests that have arrived can still be answered.
func (b *Backend[Req, Res]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for len(b.waiting) > 0 {
		b.first().answer(belfry.Permit{}, b.refusal("closed", belfry.ErrClosed))
	}
}

// Waiting returns how many Acquires wait at this moment.
func (b *Backend[Req, Res]) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// Held returns how many permits are granted and neither spent nor given back.
func (b *Backend[Req, Res]) Held() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.granted)
}

// Free returns how many calls are still allowed.
func (b *Backend[Req, Res]) Free() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free
}

// How long Next waits before it gives up: in a bubble virtual time, where it covers any timer worth testing.
const (
	patience        = 5 * time.Second
	virtualPatience = 24 * time.Hour
	parting         = 500 * time.Millisecond
	blink           = 20 * time.Millisecond // what "nothing arrives" means in real time
)

// Next waits for the next request, in order of arrival, and ends the test if none comes. In a bubble virtual time passes
// meanwhile if it must, a day at most.
func (b *Backend[Req, Res]) Next() *Request[Req, Res] {
	b.t.Helper()
	limit := patience
	if b.bubble {
		limit = virtualPatience
	}
	giveUp := time.NewTimer(limit)
	defer giveUp.Stop()
	for {
		if r := b.take(); r != nil {
			return r
		}
		select {
		case <-b.arrived:
		case <-giveUp.C:
			b.t.Fatalf("belfrytest: no request arrived within %v (%d waiting for a permit, %d holding one, %d more allowed)",
				limit, b.Waiting(), b.Held(), b.Free())
			return nil
		}
	}
}

// Expect is [Next] for a request that must equal want.
func (b *Backend[Req, Res]) Expect(want Req) *Request[Req, Res] {
	b.t.Helper()
	r := b.Next()
	if r != nil && !reflect.DeepEqual(r.Req, want) {
		r.decide(func(context.Context, Req) (res Res, err error) { return res, errTestOver })
		b.t.Fatalf("belfrytest: got request %v, want %v", r.Req, want)
	}
	return r
}

// ExpectNone fails the test if a request has arrived, or arrives before everything in the bubble is idle; outside a
// bubble, within a few milliseconds.
func (b *Backend[Req, Res]) ExpectNone() {
	b.t.Helper()
	if !quiet() {
		time.Sleep(blink)
	}
	b.mu.Lock()
	n := len(b.queue)
	var first Req
	if n > 0 {
		first = b.queue[0].Req
	}
	b.mu.Unlock()
	if n > 0 {
		b.t.Errorf("belfrytest: want no request, got %v (%d in all)", first, n)
	}
}

func (b *Backend[Req, Res]) take() *Request[Req, Res] {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	r := b.queue[0]
	b.queue = b.queue[1:]
	r.expected = true
	if len(b.queue) > 0 {
		b.signal() // one token may have stood for several
	}
	return r
}

// signal says that the queue is worth a look.
func (b *Backend[Req, Res]) signal() {
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

// finish runs when the test is over. It ends everything that still waits, so that the test fails and does not hang.
func (b *Backend[Req, Res]) finish() {
	b.t.Helper()
	if !quiet() {
		b.windDown()
	}
	for _, text := range b.end() {
		b.t.Errorf("%s", text)
	}
	quiet()
}

// windDown gives goroutines that are on their way a moment of real time to finish.
func (b *Backend[Req, Res]) windDown() {
	for deadline := time.Now().Add(parting); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		b.mu.Lock()
		busy := len(b.granted) + len(b.running)
		b.mu.Unlock()
		if busy == 0 {
			return
		}
	}
}

func (b *Backend[Req, Res]) end() (problems []string) {
	b.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for _, r := range b.queue {
		problems = append(problems, fmt.Sprintf("belfrytest: request %v arrived, and the test never looked at it", r.Req))
	}
	for r := range b.running {
		if r.expected {
			problems = append(problems, fmt.Sprintf("belfrytest: request %v was never answered", r.Req))
		}
		r.decide(func(context.Context, Req) (res Res, err error) { return res, errTestOver })
	}
	return append(problems, leaked(b.granted)...)
}

var errTestOver = errors.New("belfrytest: the test ended before this request was answered")

// serve hands what is free to those who wait, first come, first served. mu is held.
func (b *Backend[Req, Res]) serve() {
	for b.free > 0 && len(b.waiting) > 0 {
		t := b.first()
		t.answer(b.grant(t.grant), nil)
	}
}

func (b *Backend[Req, Res]) grant(g *grant) belfry.Permit {
	b.free--
	b.granted[g] = struct{}{}
	return belfry.NewPermit(g)
}

func (b *Backend[Req, Res]) first() *turn {
	t := b.waiting[0]
	b.waiting = b.waiting[1:]
	return t
}

func (t *turn) answer(permit belfry.Permit, err error) {
	t.permit, t.err = permit, err
	close(t.c)
}

// errorf fails the test, unless that is over.
func (b *Backend[Req, Res]) errorf(format string, args ...any) {
	b.t.Helper()
	b.mu.Lock()
	ended := b.ended
	b.mu.Unlock()
	if !ended {
		b.t.Errorf(format, args...)
	}
}

func (b *Backend[Req, Res]) refusal(reason string, err error) error {
	return &belfry.Rejection{Layer: "belfrytest", Reason: reason, Err: err}
}
