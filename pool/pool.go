// Package pool keeps a service for each key: for each tenant, host or shard. It makes one when a key is first used, keeps at most so
// many, and drops those that nobody has used for a while.
//
// A service of [Pool.Get] is ready when the pool has room for its key and the key's own service is ready. It does not wait for
// the former: when the pool is full, the key that has been idle for longest gives way; if none is idle Acquire
// refuses, which matches [belfry.ErrNotReady]. What was dropped is made again when its key is next used, and nobody notices but by
// the time that takes. A service of [Pool.Service], which takes the key from the request, is late: it is always ready, and Call
// reserves what the key needs.
//
// A service is in use from Acquire until its call is over, streamed responses included, and idle otherwise. One in use is never closed:
// when it is evicted, by [Pool.Evict] or [Pool.Close], its calls go on, and the last of them closes it, if it has a method
// Close() error. The pool keeps no context, and the end of a caller's leaves nothing in use.
//
// Making should not wait: whoever uses the key first makes its service, whatever the context says. What takes long, or has to be made
// again, is for package reconnect, which a pool fits well: one connection for each key, made when it is first used. A key's
// service that is closed by others stays so until it is evicted.
package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/belfry-go/belfry"
)

const layer = "pool"

var (
	errClosed    error = &belfry.Rejection{Layer: layer, Reason: "closed", Err: belfry.ErrClosed}
	errNoMake          = errors.New("pool: make must not be nil")
	errNoKey           = errors.New("pool: key must not be nil")
	errNoService       = errors.New("make returned neither a service nor an error")
	errUnmade          = errors.New("make did not return")
)

// Config says how many services a [Pool] keeps, and for how long. The zero value is ready to use.
type Config struct {
	// Max is how many services there are at once, without evicted ones whose calls go on. 0 means 1000.
	Max int
	// Idle is how long a service is kept that nobody uses. 0 means 5 minutes.
	Idle time.Duration
}

const (
	defaultMax  = 1000
	defaultIdle = 5 * time.Minute
)

// Validate says which field is out of range.
func (c Config) Validate() error {
	switch {
	case c.Max < 0:
		return fmt.Errorf("pool: max must be at least 1, or 0 for the default, got %d", c.Max)
	case c.Idle < 0:
		return fmt.Errorf("pool: idle must be above 0, or 0 for the default, got %v", c.Idle)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Max == 0 {
		c.Max = defaultMax
	}
	if c.Idle == 0 {
		c.Idle = defaultIdle
	}
	return c
}

// A Pool is a bounded map of services. It is safe for concurrent use.
type Pool[K comparable, Req, Res any] struct {
	make func(key K) (belfry.Service[Req, Res], error)
	cfg  Config
	sem  belfry.Semantics[Req, Res]

	// mu guards what follows, and nothing is called under it. An entry is in idle if and only if it is in entries and nobody
	// uses it; the front of idle has been there for longest.
	mu      sync.Mutex
	entries map[K]*entry[K, Req, Res]
	idle    line[K, Req, Res]
	timer   *time.Timer // nil before anything was idle
	armed   bool        // timer will expire what has been idle for long enough then; whenever idle is not empty
	closed  bool
	stats   Stats
}

// An entry is the service of a key, from its making until its last call is over.
type entry[K comparable, Req, Res any] struct {
	key  K
	done func() // ends a use; made once: every streamed call needs it
	made chan struct{}
	svc  belfry.Service[Req, Res] // set before made is closed, or else err is
	err  error

	// Guarded by the pool's mu.
	uses          int
	evicted       bool
	idle          bool // it is in the pool's line, between these two, since then
	before, after *entry[K, Req, Res]
	since         time.Time
}

// New returns a pool of what make makes, in the goroutine of the key's first user: once at a time for a key, and for several keys at
// once. Its error is that of all who wait for the key then; the next tries again. A panic goes to the caller. Without sem, a call is over
// when Call returns. New panics if make is nil or Validate fails.
func New[K comparable, Req, Res any](make func(key K) (belfry.Service[Req, Res], error), cfg Config, sem ...belfry.Semantics[Req, Res]) *Pool[K, Req, Res] {
	if make == nil {
		panic(errNoMake)
	}
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &Pool[K, Req, Res]{
		make: make, cfg: cfg.withDefaults(), sem: belfry.SemanticsOf(sem), entries: map[K]*entry[K, Req, Res]{},
	}
}

// Get returns the service for key; for the same key the same, as == tells. It makes nothing yet, and stays good however often the
// key is evicted.
func (p *Pool[K, Req, Res]) Get(key K) belfry.Service[Req, Res] { return target[K, Req, Res]{p, key} }

// Service returns the late service that sends each request to the service for its key. A panic in key is the caller's.
func (p *Pool[K, Req, Res]) Service(key func(Req) K) belfry.Service[Req, Res] {
	if key == nil {
		panic(errNoKey)
	}
	return &keyed[K, Req, Res]{p, key}
}

// Evict takes out the service for key: whoever uses the key next gets a new one. It reports whether there was one.
func (p *Pool[K, Req, Res]) Evict(key K) bool {
	p.mu.Lock()
	e := p.entries[key]
	idle := e != nil && p.takeOut(e)
	if e != nil {
		p.stats.Evicted++
	}
	p.mu.Unlock()
	if idle {
		_ = e.close() // as when others drop it, nobody is there to hear
	}
	return e != nil
}

// Close makes Acquire fail with [belfry.ErrClosed] and takes out all services. It closes those that nobody uses, and returns their
// errors; it does not wait for the calls of others. Closing again does nothing.
func (p *Pool[K, Req, Res]) Close() error {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	var idle []*entry[K, Req, Res]
	for _, e := range p.entries {
		if p.takeOut(e) {
			idle = append(idle, e)
		}
	}
	p.mu.Unlock()
	var errs []error
	for _, e := range idle {
		errs = append(errs, e.close())
	}
	return errors.Join(errs...)
}

// Stats is what a [Pool] has counted, at one moment.
type Stats struct {
	// Services is how many there are, and Idle how many of them nobody uses.
	Services, Idle int
	// Draining is how many were evicted and have calls in flight.
	Draining int
	// Made counts the services that were made.
	Made uint64
	// Evicted counts those that were taken out for another key, or by Evict, and Expired those that were idle for too long.
	Evicted, Expired uint64
	// Rejected counts the calls of Acquire for which there was no room.
	Rejected uint64
}

// Stats returns what the pool has counted.
func (p *Pool[K, Req, Res]) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Services, s.Idle = len(p.entries), p.idle.n
	return s
}

// use begins a use of the service for key, and makes it if there is none.
func (p *Pool[K, Req, Res]) use(ctx context.Context, key K) (*entry[K, Req, Res], error) {
	e, first, displaced, err := p.enter(key)
	if displaced != nil {
		go func() { _ = displaced.close() }()
	}
	if err != nil {
		return nil, err
	}
	if first {
		p.fill(e)
	} else if err := e.await(ctx); err != nil {
		p.leave(e)
		return nil, err
	}
	if e.err != nil {
		p.leave(e)
		return nil, belfry.Refuse(layer, e.err)
	}
	return e, nil
}

// enter begins a use of the entry for key. If it is the first, the caller has to fill it. What gave way for it is idle.
func (p *Pool[K, Req, Res]) enter(key K) (e *entry[K, Req, Res], first bool, displaced *entry[K, Req, Res], err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, nil, errClosed
	}
	if e = p.entries[key]; e != nil {
		e.uses++
		if e.idle {
			p.idle.remove(e)
		}
		return e, false, nil, nil
	}
	if len(p.entries) >= p.cfg.Max {
		if p.idle.n == 0 {
			p.stats.Rejected++
			return nil, false, nil, &belfry.Rejection{
				Layer: layer, Reason: "full", InFlight: len(p.entries), Limit: p.cfg.Max, Err: belfry.ErrNotReady,
			}
		}
		displaced = p.idle.front
		p.takeOut(displaced)
		p.stats.Evicted++
	}
	e = p.newEntry(key)
	p.entries[key] = e
	return e, true, displaced, nil
}

// newEntry returns an entry that is in use. It is a function of its own because done would put its e on the heap for every call.
func (p *Pool[K, Req, Res]) newEntry(key K) *entry[K, Req, Res] {
	e := &entry[K, Req, Res]{key: key, made: make(chan struct{}), uses: 1}
	e.done = func() { p.leave(e) }
	return e
}

// fill makes the service of e. If that fails, e is taken out.
func (p *Pool[K, Req, Res]) fill(e *entry[K, Req, Res]) {
	svc, err := belfry.Service[Req, Res](nil), errUnmade
	returned := false
	defer func() {
		p.mu.Lock()
		if err != nil {
			p.takeOut(e)
		} else {
			p.stats.Made++
		}
		p.mu.Unlock()
		e.svc, e.err = svc, err
		close(e.made)
		if !returned {
			p.leave(e) // for the caller, who will not
		}
	}()
	svc, err = p.make(e.key)
	returned = true
	if err == nil && svc == nil {
		err = errNoService
	}
}

// leave ends a use. The last makes the entry idle, or closes it if it is evicted; nobody need wait for that.
func (p *Pool[K, Req, Res]) leave(e *entry[K, Req, Res]) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	e.uses--
	switch {
	case e.uses > 0:
	case e.evicted:
		p.stats.Draining--
		go func() { _ = e.close() }()
	default:
		e.since = now
		p.idle.push(e)
		if !p.armed {
			p.wake(p.cfg.Idle)
		}
	}
}

// takeOut takes e out of the map, and reports whether nobody uses it. mu is held.
func (p *Pool[K, Req, Res]) takeOut(e *entry[K, Req, Res]) (idle bool) {
	if e.evicted {
		return false
	}
	e.evicted = true
	delete(p.entries, e.key)
	if !e.idle {
		p.stats.Draining++
		return false
	}
	p.idle.remove(e)
	return true
}

// wake arranges that expire runs after d. mu is held.
func (p *Pool[K, Req, Res]) wake(d time.Duration) {
	p.armed = true
	if p.timer == nil {
		p.timer = time.AfterFunc(d, p.expire)
		return
	}
	p.timer.Reset(d)
}

// expire takes out what has been idle for too long. It may find nothing: the timer is left alone when what it was set for is used again.
func (p *Pool[K, Req, Res]) expire() {
	now := time.Now()
	var old []*entry[K, Req, Res]
	p.mu.Lock()
	p.armed = false
	for e := p.idle.front; e != nil; e = p.idle.front {
		if left := p.cfg.Idle - now.Sub(e.since); left > 0 {
			p.wake(left)
			break
		}
		p.takeOut(e)
		p.stats.Expired++
		old = append(old, e)
	}
	p.mu.Unlock()
	for _, e := range old {
		_ = e.close()
	}
}

// await waits until the service is made.
func (e *entry[K, Req, Res]) await(ctx context.Context) error {
	select {
	case <-e.made:
		return nil
	default:
	}
	select {
	case <-e.made:
		return nil
	case <-ctx.Done():
		return &belfry.Rejection{Layer: layer, Reason: "context done while the service was made", Err: ctx.Err()}
	}
}

// close closes the service, if it has a Close. A panic in it is lost, because it has no caller to go to. It is called once.
func (e *entry[K, Req, Res]) close() error {
	closer, ok := e.svc.(io.Closer)
	if !ok {
		return nil
	}
	defer func() { _ = recover() }()
	return closer.Close()
}

// call spends a permit of e. The use of e ends with the call.
func (p *Pool[K, Req, Res]) call(ctx context.Context, e *entry[K, Req, Res], permit belfry.Permit, req Req) (Res, error) {
	returned := false
	defer func() {
		if !returned {
			p.leave(e)
		}
	}()
	res, err := e.svc.Call(ctx, permit, req)
	returned = true
	return p.sem.Finish(res, err, e.done), err
}
