package belfrytest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
)

// inner is the backend that the suite puts under a layer: it has a number of permits, counts them, and does with every
// request what the check has planned.
type inner struct {
	r *trial

	// mu guards all below. It is not held while waiting or while using a context, which is the trial's and looks back.
	mu       sync.Mutex
	capacity int
	held     int
	zero     bool // permits remember nothing
	picky    bool // a context that is done is refused even if there is room
	waiting  []*innerTurn
	failing  []ending // of the next Acquires
	failAll  bool     // they are refused, all of them
	plans    map[int]plan
	attempts map[int][]*try
	arrivals []int // requests in order of arrival
	running  int   // calls on a good permit
	misused  int
	lenient  bool // misuse is not to be judged now
	closed   bool
	aborted  bool
	stop     chan struct{}

	instant time.Time // of the latest Acquire
	burst   int       // Acquires at that instant
	bursts  int       // the most there ever were
}

type innerTurn struct {
	c       chan struct{}
	granted bool
}

// An innerGrant is what a permit of inner stands for.
type innerGrant struct{ used bool }

var _ belfry.Service[int, int] = (*inner)(nil)

func newInner(r *trial) *inner {
	return &inner{r: r, plans: map[int]plan{}, attempts: map[int][]*try{}, stop: make(chan struct{})}
}

// Acquire grants a permit, first come, first served.
func (in *inner) Acquire(ctx context.Context) (belfry.Permit, error) {
	in.r.inward("Acquire")
	in.throttle()
	ended := ctx.Err()
	permit, turn, err := in.enter(ended)
	if turn == nil {
		return permit, err
	}
	select {
	case <-turn.c:
	case <-ctx.Done():
	case <-in.stop:
	}
	ended = ctx.Err()
	return in.resume(turn, ended)
}

func (in *inner) enter(ended error) (belfry.Permit, *innerTurn, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.aborted || in.closed:
		return belfry.Permit{}, nil, in.refusal(belfry.ErrClosed)
	case len(in.failing) > 0:
		how := in.failing[0]
		in.failing = in.failing[1:]
		return belfry.Permit{}, nil, in.failAcquire(how)
	case in.failAll:
		return belfry.Permit{}, nil, in.failAcquire(refuses)
	case ended != nil && in.picky && !errors.Is(ended, belfry.ErrNotReady):
		return belfry.Permit{}, nil, in.refusal(ended)
	case in.held < in.capacity:
		return in.grant(), nil, nil
	case ended != nil:
		return belfry.Permit{}, nil, in.refusal(ended)
	}
	turn := &innerTurn{c: make(chan struct{})}
	in.waiting = append(in.waiting, turn)
	return belfry.Permit{}, turn, nil
}

func (in *inner) resume(turn *innerTurn, ended error) (belfry.Permit, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if turn.granted {
		return in.permit(), nil
	}
	if i := slices.Index(in.waiting, turn); i >= 0 {
		in.waiting = slices.Delete(in.waiting, i, i+1)
	}
	if in.aborted || in.closed {
		ended = belfry.ErrClosed
	}
	return belfry.Permit{}, in.refusal(ended)
}

// failAcquire ends an Acquire as planned. mu is held, and let go by the deferred unlock of enter.
func (in *inner) failAcquire(how ending) error {
	switch how {
	case refuses:
		return &belfry.Rejection{Layer: "backend", Reason: "planned", RetryAfter: time.Second, Err: errors.Join(belfry.ErrNotReady, errRefused)}
	case panics:
		panic(panicText)
	case exits:
		runtime.Goexit()
	case answers, fails:
	}
	return errAcquire
}

func (in *inner) refusal(err error) error {
	return &belfry.Rejection{Layer: "backend", InFlight: in.held, Limit: in.capacity, Err: err}
}

// grant takes a permit. mu is held.
func (in *inner) grant() belfry.Permit {
	in.held++
	return in.permit()
}

func (in *inner) permit() belfry.Permit {
	if in.zero {
		return belfry.Permit{}
	}
	return belfry.NewPermit(&innerGrant{})
}

// throttle notices who asks again and again without a pause, and slows them down so that the clock goes on.
func (in *inner) throttle() {
	in.mu.Lock()
	if now := time.Now(); !now.Equal(in.instant) {
		in.instant, in.burst = now, 0
	}
	in.burst++
	in.bursts = max(in.bursts, in.burst)
	slow := in.bursts > hammering
	in.mu.Unlock()
	if slow {
		time.Sleep(time.Second)
	}
}

// hammering is more Acquires than any layer needs in one instant.
const hammering = 1000

// use marks a permit as used, and reports whether that frees room. Where rule 2 is not what the check is about, permits
// that only look wrong are taken for good, so that this check goes on as if they were.
func (in *inner) use(permit belfry.Permit, by string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.aborted {
		return true
	}
	g, ok := permit.Value().(*innerGrant)
	problem := ""
	switch {
	case in.held <= in.running:
		problem = "a permit although all that were granted have been used"
	case in.zero && permit.Value() != nil:
		problem = fmt.Sprintf("a foreign permit (%T), where Acquire had granted the zero Permit", permit.Value())
	case !in.zero && !ok:
		problem = fmt.Sprintf("a permit that Acquire had never granted (it holds a %T)", permit.Value())
	case !in.zero && g.used:
		problem = "a permit that had been used"
	}
	spare := in.held > in.running && !(ok && g.used)
	if ok {
		g.used = true
	}
	if problem == "" {
		return true
	}
	in.misused++
	if !in.lenient {
		in.r.failRule(2, "%s of the inner service was given %s", by, problem)
	}
	return spare
}

// free ends the use of a permit: the next in line has it.
func (in *inner) free() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.held = max(0, in.held-1) // after the end, anything goes
	for in.held < in.capacity && len(in.waiting) > 0 {
		turn := in.waiting[0]
		in.waiting = in.waiting[1:]
		in.held++
		turn.granted = true
		close(turn.c)
	}
}

// Call does what is planned for req.
func (in *inner) Call(ctx context.Context, permit belfry.Permit, req int) (res int, err error) {
	good := in.use(permit, "Call")
	ended := ctx.Err()
	p, how, a := in.begin(ctx, ended, req, good)
	defer func() { in.finish(a, err, good) }()
	in.r.inward("Call")
	if how == refuses {
		return 0, &belfry.Rejection{Layer: "backend", Reason: "planned", Err: errors.Join(belfry.ErrNotReady, errRefused)}
	}
	if ended != nil && !p.stubborn {
		return 0, ended
	}
	if err := in.take(ctx, p); err != nil {
		return 0, err
	}
	switch how {
	case panics:
		panic(panicText)
	case exits:
		runtime.Goexit()
	case fails:
		return 0, &callError{req, len(in.tries(req))}
	case answers, refuses:
	}
	return -req, nil
}

func (in *inner) begin(ctx context.Context, ended error, req int, good bool) (plan, ending, *try) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if good {
		in.running++
	}
	in.arrivals = append(in.arrivals, req)
	p := in.plans[req]
	how := answers
	if len(p.ends) > 0 {
		how = p.ends[min(len(in.attempts[req]), len(p.ends)-1)]
	}
	a := &try{running: true, dead: ended != nil, ctx: ctx}
	if how != refuses {
		in.attempts[req] = append(in.attempts[req], a)
	}
	return p, how, a
}

func (in *inner) finish(a *try, err error, good bool) {
	in.mu.Lock()
	a.err, a.running = err, false
	if good {
		in.running--
	}
	in.mu.Unlock()
	if good {
		in.free()
	}
}

// take lets the time of a call pass.
func (in *inner) take(ctx context.Context, p plan) error {
	done := ctx.Done()
	if p.stubborn {
		done = nil
	}
	var timer <-chan time.Time
	if p.takes > 0 {
		t := time.NewTimer(p.takes)
		defer t.Stop()
		timer = t.C
	}
	switch {
	case p.gate != nil:
		select {
		case <-p.gate:
		case <-in.stop:
		case <-done:
			return ctx.Err()
		}
	case timer != nil:
		select {
		case <-timer:
		case <-in.stop:
		case <-done:
			return ctx.Err()
		}
	}
	return nil
}

// Release gives a permit back.
func (in *inner) Release(permit belfry.Permit) {
	good := in.use(permit, "Release")
	in.r.inward("Release")
	if good {
		in.free()
	}
}
