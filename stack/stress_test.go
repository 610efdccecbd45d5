package stack_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/balance"
	"github.com/belfry-go/belfry/breaker"
	"github.com/belfry-go/belfry/budget"
	"github.com/belfry-go/belfry/buffer"
	"github.com/belfry-go/belfry/hedge"
	"github.com/belfry-go/belfry/limit"
	"github.com/belfry-go/belfry/retry"
	"github.com/belfry-go/belfry/shed"
	"github.com/belfry-go/belfry/stack"
)

// TestStress sends calls through ten layers and a balancer, whose endpoints come and go, fail, panic and end goroutines, while callers
// leave. Afterwards every call has ended once, every response was closed once, and nothing is reserved anywhere. The bubble
// looks for goroutines.
//
// STACK_CALLS sets how many calls, STACK_SEED repeats a run, as far as the order of goroutines allows.
func TestStress(t *testing.T) {
	calls, seed := 6000, rand.Uint64()
	if testing.Short() {
		calls = 2000
	}
	if n, err := strconv.Atoi(os.Getenv("STACK_CALLS")); err == nil {
		calls = n
	}
	if n, err := strconv.ParseUint(os.Getenv("STACK_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Run(fmt.Sprintf("%d calls, seed %d", calls, seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStress(t, seed)
			s.run(calls)
			s.check(calls)
		})
	})
}

type parcelService = belfry.Service[order, *parcel]

// A stress is a stack under random calls, and what is known about it.
type stress struct {
	t        *testing.T
	seed     uint64
	svc      parcelService
	balancer *balance.Balancer[order, *parcel]
	seats    *buffer.Service[order, *parcel]
	retry    *retry.Service[order, *parcel]
	hedge    *hedge.Service[order, *parcel]
	breaker  *breaker.Service[order, *parcel]
	adaptive *limit.Adaptive[order, *parcel]
	limiter  *limit.Limiter
	rate     *limit.RateLimiter

	mu    sync.Mutex
	desks []*desk

	over        chan struct{}  // closed when all calls have ended
	storm       atomic.Bool    // every attempt fails
	sent, ended []atomic.Int32 // by call: attempts, and ends
	open        atomic.Int64   // responses that are not closed
	ends        [6]atomic.Int64
}

// How a call ended, for the one who made it.
const (
	answered = iota
	failed
	rejected
	left
	unwound
	released
)

func newStress(t *testing.T, seed uint64) *stress {
	s := &stress{
		t: t, seed: seed, over: make(chan struct{}),
		limiter: limit.NewLimiter(40), rate: limit.NewRateLimiter(100_000, time.Second, limit.RateConfig{}),
	}
	extra := budget.Unlimited()
	var err error
	if s.balancer, err = balance.New(s.churn(), s.dial, balance.Config{Rand: rand.NewPCG(seed, 1)}, parcels); err != nil {
		t.Fatal(err)
	}
	s.svc, err = stack.New[order, *parcel]().Semantics(parcels).
		LoadShed(shed.Config{}).
		Filter(func(_ context.Context, o order) (order, error) { return o, nil }).
		Layer("buffer", kept(&s.seats, func(inner parcelService) *buffer.Service[order, *parcel] {
			return buffer.New(inner, 24, buffer.Config{MaxWait: 50 * time.Millisecond})
		})).
		RateLimiter(s.rate).
		Limiter(s.limiter).
		Timeout(200*time.Millisecond).
		Layer("retry", kept(&s.retry, func(inner parcelService) *retry.Service[order, *parcel] {
			return retry.New(inner, retry.Config{Budget: extra, Backoff: retry.Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond}}, parcels)
		})).
		Layer("hedge", kept(&s.hedge, func(inner parcelService) *hedge.Service[order, *parcel] {
			return hedge.New(inner, hedge.Config{Delay: 5 * time.Millisecond, MaxHedges: 2, Budget: extra}, parcels)
		})).
		Layer("breaker", kept(&s.breaker, func(inner parcelService) *breaker.Service[order, *parcel] {
			return breaker.New(inner, breaker.Config{Consecutive: 12, MinBackoff: 5 * time.Millisecond, MaxBackoff: 20 * time.Millisecond}, parcels)
		})).
		Layer("adaptive limit", kept(&s.adaptive, func(inner parcelService) *limit.Adaptive[order, *parcel] {
			return limit.NewAdaptive(inner, limit.NewAdaptiveLimiter(limit.AdaptiveConfig{}), parcels)
		})).
		Build(s.balancer)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// kept is a layer that the test looks at.
func kept[S parcelService](in *S, layer func(parcelService) S) belfry.Layer[order, *parcel] {
	return func(inner parcelService) parcelService {
		*in = layer(inner)
		return *in
	}
}

// run makes the calls from 64 goroutines.
func (s *stress) run(calls int) {
	s.sent, s.ended = make([]atomic.Int32, calls+1), make([]atomic.Int32, calls+1)
	var weather, callers sync.WaitGroup
	weather.Go(s.weather)
	const many = 64
	for g := range many {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(s.seed, 10+uint64(g)))
			for id := 1 + g; id <= calls; id += many {
				if r.IntN(20) == 0 {
					time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
				}
				alone(func() { s.once(id, r) })
			}
		})
	}
	callers.Wait()
	close(s.over)
	weather.Wait()
}

// alone runs f in a goroutine of its own, which may panic or end.
func alone(f func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() { _ = recover() }()
		f()
	}()
	<-over
}

// once makes one call, in one of the ways there are.
func (s *stress) once(id int, r *rand.Rand) {
	how, leaves := r.IntN(12), time.Duration(r.IntN(8))*time.Millisecond
	o := order{id, [2]plan{draw(r), draw(r)}}
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	if how <= 2 {
		defer time.AfterFunc(leaves, cancel).Stop()
	}
	end := unwound
	defer func() {
		s.ended[id].Add(1)
		s.ends[end].Add(1)
	}()
	var p *parcel
	var err error
	switch how {
	case 3, 4:
		p, err = belfry.TryDo(ctx, s.svc, o)
	case 5, 6:
		p, err = s.reserve(ctx, o, r)
	case 7:
		if _, err = s.reserve(ctx, order{}, r); err == nil {
			end = released
			return
		}
	default:
		p, err = belfry.Do(ctx, s.svc, o)
	}
	end = s.judge(ctx, o, p, err)
	time.Sleep(belfry.RetryAfter(err) + time.Duration(r.IntN(4))*time.Millisecond) // it is read, or mourned
	if p != nil {
		p.Close()
	}
}

// reserve sends o after a while, unless it is the zero order: then the room is given back.
func (s *stress) reserve(ctx context.Context, o order, r *rand.Rand) (*parcel, error) {
	room, err := belfry.Reserve(ctx, s.svc)
	if err != nil {
		return nil, err
	}
	defer room.Release()
	time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
	if o.id == 0 {
		return nil, nil //nolint:nilnil // there is neither
	}
	return room.Call(ctx, o)
}

// judge looks at what a call brought.
func (s *stress) judge(ctx context.Context, o order, p *parcel, err error) int {
	sent := s.sent[o.id].Load()
	switch {
	case err == nil && (p == nil || p.id != o.id || sent == 0):
		s.t.Errorf("call %d, sent %d times, got %+v", o.id, sent, p)
	case err == nil:
		return answered
	case p != nil:
		s.t.Errorf("call %d: got a response and %v", o.id, err)
	case errors.Is(err, belfry.ErrRejected) && sent > 0:
		s.t.Errorf("call %d was sent %d times, and failed with %v", o.id, sent, err)
	case sent == 0 && ctx.Err() == nil && !errors.Is(err, belfry.ErrRejected):
		s.t.Errorf("call %d was not sent, and failed with %v", o.id, err)
	case sent == 0:
		return rejected
	case ctx.Err() != nil:
		return left
	}
	return failed
}

// check waits until nothing goes on, and looks for what is left.
func (s *stress) check(calls int) {
	time.Sleep(10 * time.Second) // longer than the slowest attempt, and any pause
	synctest.Wait()
	for id := 1; id <= calls; id++ {
		if n := s.ended[id].Load(); n != 1 {
			s.t.Errorf("call %d ended %d times", id, n)
		}
	}
	if n := s.open.Load(); n != 0 {
		s.t.Errorf("%d responses were not closed", n)
	}
	p, err := belfry.Do(s.t.Context(), s.svc, order{})
	if err != nil {
		s.t.Fatalf("in the end: %v", err)
	}
	p.Close()
	time.Sleep(time.Second)
	s.checkRoom()
	s.checkEndpoints()
	if calls >= varied {
		s.checkVariety()
	}
}

// varied is from how many calls on all that can happen has to: with fewer, a seed may open the breaker at once and hedge nothing.
const varied = 100_000

// checkRoom wants nothing to be reserved.
func (s *stress) checkRoom() {
	if l := s.limiter.Stats(); l.InFlight+l.Reserved+l.Waiting != 0 {
		s.t.Errorf("limit: %+v", l)
	}
	if l := s.adaptive.Stats(); l.InFlight+l.Reserved+l.Waiting != 0 {
		s.t.Errorf("adaptive limit: %+v", l)
	}
	if l := s.rate.Stats(); l.Waiting != 0 {
		s.t.Errorf("rate limit: %+v", l)
	}
	if b := s.seats.Stats(); b.Seated+b.Queued+b.Waiting != 0 {
		s.t.Errorf("buffer: %+v", b)
	}
	if b := s.breaker.Stats(); b.Waiting != 0 || b.State != breaker.Closed {
		s.t.Errorf("breaker: %+v", b)
	}
	for _, ep := range s.balancer.Stats().Endpoints {
		if ep.Reserved+ep.InFlight != 0 {
			s.t.Errorf("endpoint: %+v", ep)
		}
	}
}

// checkEndpoints wants all that there ever were to be idle, and closed once.
func (s *stress) checkEndpoints() {
	if err := s.balancer.Close(); err != nil {
		s.t.Errorf("Close: %v", err)
	}
	synctest.Wait()
	for i, d := range s.desks {
		if l := d.Stats(); l.InFlight+l.Reserved+l.Waiting != 0 || d.closed.Load() != 1 {
			s.t.Errorf("endpoint %d was closed %d times: %+v", i, d.closed.Load(), l)
		}
	}
}

// checkVariety wants everything to have happened that can.
func (s *stress) checkVariety() {
	h, r, b, q := s.hedge.Stats(), s.retry.Stats(), s.breaker.Stats(), s.seats.Stats()
	for what, n := range map[string]uint64{
		"answered": uint64(s.ends[answered].Load()), "failed": uint64(s.ends[failed].Load()),
		"rejected": uint64(s.ends[rejected].Load()), "left": uint64(s.ends[left].Load()),
		"unwound": uint64(s.ends[unwound].Load()), "released": uint64(s.ends[released].Load()),
		"hedged": h.Hedges, "won by a hedge": h.Won, "retried": r.Retries, "opened": b.Opened, "probed": b.Probes,
		"cancelled in the buffer": q.Cancelled, "desks": uint64(len(s.desks)),
	} {
		s.t.Logf("%s: %d", what, n)
		if n == 0 {
			s.t.Errorf("nothing was %s", what)
		}
	}
}
