package belfrytest

import (
	"context"
	"reflect"
	"runtime"
	"sync/atomic"

	"github.com/belfry-go/belfry"
	"github.com/belfry-go/belfry/internal/attempt"
)

// inward is called when the layer has gone out of itself: into the inner service or a context. Then another goroutine
// comes and uses the layer, and the one inside waits for it, so that a lock it holds would show. It does not wait
// for ever: a deadlock would stop virtual time, and with it the whole test.
func (r *trial) inward(where string) {
	if r.knocks.Load() <= 0 || r.knocked.Swap(true) {
		return
	}
	defer r.knocked.Store(false)
	r.knocks.Add(-1)
	switch r.knock(where).watch() {
	case stands:
		r.knocks.Store(0)
		r.failRule(8, "a lock is held during %s: another caller stands at it", where)
		r.inner.abort() // so that the lock is let go before the clock is needed
	case waits: // which is for rule 3 to judge, and takes real time here
		r.knocks.Add(-knocks / 4)
	case through:
	}
}

// knocks is how many visitors come in a trial.
const knocks = 40

// A visitor uses the layer from a goroutine of its own.
type visitor struct {
	suite *suite
	id    atomic.Pointer[string]
	done  atomic.Bool
}

// knock sends a visitor, who takes what he gets without waiting.
func (r *trial) knock(where string) *visitor {
	return r.visit(func() {
		permit, err := r.svc.Acquire(belfry.NoWait(context.Background()))
		switch {
		case err != nil:
		case where == "Call":
			_, _ = r.svc.Call(attempt.Hedge(context.Background()), permit, 1<<30) // hedges do not queue
		default:
			r.svc.Release(permit)
		}
		if stats := reflect.ValueOf(r.svc).MethodByName("Stats"); stats.IsValid() && stats.Type().NumIn() == 0 {
			stats.Call(nil)
		}
	})
}

func (r *trial) visit(f func()) *visitor {
	v := &visitor{suite: r.suite}
	go func() {
		id := goroutine()
		v.id.Store(&id)
		defer v.done.Store(true)
		f()
	}()
	return v
}

// What a visitor is found doing.
type found int

const (
	through found = iota
	stands        // at a mutex
	waits         // for something else
)

// watch returns when the visitor is through, waits, or has stood at a mutex for too long.
func (v *visitor) watch() found {
	last := v.suite.clock.ticks.Load()
	for standing, waiting := 0, 0; !v.done.Load(); {
		runtime.Gosched()
		tick := v.suite.clock.ticks.Load()
		if tick == last || v.id.Load() == nil {
			continue
		}
		last = tick
		switch state := stateOf(*v.id.Load()); {
		case atMutex(state):
			standing, waiting = standing+1, 0
		case idle(state):
			standing, waiting = 0, waiting+1
		default:
			standing, waiting = 0, 0
		}
		switch {
		case standing > v.suite.lockedFor:
			return stands
		case waiting > 2:
			return waits
		}
	}
	return through
}
