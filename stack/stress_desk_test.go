package stack_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/discover"
	"github.com/belfry-go/belfry/limit"
)

// An order is a request of the stress test. Its plans are what its first attempt meets, and what the others do.
type order struct {
	id    int
	plans [2]plan
}

// A plan is how long an attempt takes, and how it ends.
type plan struct {
	takes time.Duration
	ends  ending
	deaf  bool // it does not notice that its context ends
}

type ending uint8

const (
	good   ending = iota
	bad           // a response that is a failure
	broken        // an error
	panics
	exits
)

var errBroken = errors.New("broken")

// draw returns a plan: one attempt in ten is trouble.
func draw(r *rand.Rand) plan {
	p := plan{takes: time.Duration(r.ExpFloat64() * float64(2*time.Millisecond))}
	switch r.IntN(100) {
	case 0:
		p.ends = panics
	case 1:
		p.ends = exits
	case 2, 3, 4:
		p.ends = bad
	case 5, 6, 7:
		p.ends = broken
	case 8:
		p.takes = time.Second
	case 9:
		p.takes, p.deaf = 100*time.Millisecond, true
	}
	return p
}

func (p plan) wait(ctx context.Context) error {
	timer := time.NewTimer(p.takes)
	defer timer.Stop()
	if p.deaf {
		<-timer.C
		return nil
	}
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A parcel is a streamed response: it is over when it is closed.
type parcel struct {
	s      *stress
	id     int
	bad    bool
	desk   *desk
	done   []func()
	closed atomic.Bool
}

func (p *parcel) Close() {
	if p.desk.closed.Load() > 0 {
		p.s.t.Errorf("call %d: its endpoint was closed before its response", p.id)
	}
	if p.closed.Swap(true) {
		p.s.t.Errorf("call %d: a response was closed twice", p.id)
		return
	}
	p.s.open.Add(-1)
	for _, done := range p.done {
		done()
	}
}

var parcels = belfry.Semantics[order, *parcel]{
	Classify: func(p *parcel, err error) belfry.Outcome {
		if err == nil && p.bad {
			return belfry.Outcome{Kind: belfry.Failure, Retry: true}
		}
		return belfry.ClassifyError(err)
	},
	Copy:       func(o order) (order, bool) { return o, o.id%11 != 0 },
	Idempotent: func(o order) bool { return o.id%7 != 0 },
	Until:      func(p *parcel, done func()) *parcel { p.done = append(p.done, done); return p },
	Discard:    func(p *parcel) { p.Close() },
}

// A desk is an endpoint: it has room for eight calls.
type desk struct {
	*limit.Concurrency[order, *parcel]
	s      *stress
	closed atomic.Int32
}

func (s *stress) dial(context.Context, string, string) (belfry.Service[order, *parcel], error) {
	d := &desk{s: s}
	d.Concurrency = limit.NewConcurrency(belfry.Of(d.serve), limit.NewLimiter(8), parcels)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.desks = append(s.desks, d)
	return d, nil
}

func (d *desk) Close() error {
	d.closed.Add(1)
	return nil
}

func (d *desk) serve(ctx context.Context, o order) (*parcel, error) {
	s := d.s
	plan := o.plans[min(s.sent[o.id].Add(1), 2)-1]
	if d.closed.Load() > 0 {
		s.t.Errorf("call %d: its endpoint was closed before", o.id)
	}
	if err := plan.wait(ctx); err != nil {
		return nil, err
	}
	ends := plan.ends
	if s.storm.Load() {
		ends = broken
	}
	switch ends {
	case broken:
		return nil, errBroken
	case panics:
		panic("oh")
	case exits:
		runtime.Goexit()
	case good, bad:
	}
	s.open.Add(1)
	return &parcel{s: s, id: o.id, bad: ends == bad, desk: d}, nil
}

// churn is a source whose endpoints come and go; one stays.
func (s *stress) churn() iter.Seq2[discover.Change, error] {
	return func(yield func(discover.Change, error) bool) {
		r := rand.New(rand.NewPCG(s.seed, 2))
		for ok := yield(discover.Insert("always"), nil); ok; {
			select {
			case <-s.over:
				return
			case <-time.After(time.Duration(1+r.IntN(20)) * time.Millisecond):
			}
			change := discover.Change{Key: strconv.Itoa(r.IntN(6)), Remove: r.IntN(3) == 0}
			if !change.Remove {
				change.Addr = strconv.Itoa(r.Int())
			}
			ok = yield(change, nil)
		}
	}
}

// weather lets everything fail for a while, now and then, and changes the limit.
func (s *stress) weather() {
	r := rand.New(rand.NewPCG(s.seed, 3))
	for {
		select {
		case <-s.over:
			s.storm.Store(false)
			_ = s.limiter.Resize(40)
			return
		case <-time.After(time.Duration(1+r.IntN(30)) * time.Millisecond):
		}
		s.storm.Store(r.IntN(6) == 0)
		_ = s.limiter.Resize(20 + r.IntN(40))
		if r.IntN(50) == 0 {
			s.breaker.Trip(10 * time.Millisecond)
		}
	}
}
